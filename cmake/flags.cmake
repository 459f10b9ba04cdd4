# Flags of everything that is compiled in this folder and below: equal bits on all machines, hardened binaries.
# A project that has this one as a subfolder keeps its own flags.

# A product and a sum are rounded one by one. Processors that can fuse the two would give other bits.
add_compile_options(-ffp-contract=off)

add_compile_options(-fstack-protector-strong)
# FORTIFY needs an optimised build; sanitizers check for themselves; a level that the caller chose stays.
if(NOT CMAKE_CXX_FLAGS MATCHES "_FORTIFY_SOURCE|-fsanitize")
    add_compile_options(
        "$<$<CONFIG:Release,RelWithDebInfo,MinSizeRel>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=2>")
endif()
# Full RELRO: all symbols are bound when the library is loaded, then their table is read-only.
if(NOT APPLE)
    add_link_options(-Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)
endif()
