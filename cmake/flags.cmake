# Compiler flags for this project: the same bits on all machines, and hardened binaries.
# A parent project keeps its own flags.

# Round the product and the sum separately. Processors that fuse the two would give other bits.
add_compile_options(-ffp-contract=off)

add_compile_options(-fstack-protector-strong)
# FORTIFY needs an optimised build. Sanitizers have their own checks. A level that the caller chose
# stays.
if(NOT CMAKE_CXX_FLAGS MATCHES "_FORTIFY_SOURCE|-fsanitize")
    add_compile_options(
        "$<$<CONFIG:Release,RelWithDebInfo,MinSizeRel>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=2>")
endif()
# Full RELRO: the loader binds all symbols at once, then makes their table read-only.
if(NOT APPLE)
    add_link_options(-Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)
endif()
