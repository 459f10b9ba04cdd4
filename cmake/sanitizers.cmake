# tensorhash_sanitize(TARGET [LIBRARY]): compiles a target with the sanitizer that
# TENSORHASH_SANITIZER names. With LIBRARY, "address" also checks for undefined behaviour.
#
# Only the library and the tests that look inside it are compiled this way. All other code has the
# same options in every preset, so that a compiler cache shares its objects between them.
if(TENSORHASH_SANITIZER AND NOT TENSORHASH_SANITIZER MATCHES "^(address|thread)$")
    message(FATAL_ERROR "TENSORHASH_SANITIZER: expected address or thread, got ${TENSORHASH_SANITIZER}")
endif()
if(TENSORHASH_SANITIZER STREQUAL "address")
    add_link_options(-fsanitize=address,undefined)
elseif(TENSORHASH_SANITIZER)
    add_link_options(-fsanitize=${TENSORHASH_SANITIZER})
endif()

function(tensorhash_sanitize target)
    if(NOT TENSORHASH_SANITIZER)
        return()
    endif()
    # Assertions are on. FORTIFY is off, because sanitizers do its checks.
    target_compile_options(${target} PRIVATE
        -O1 -g1 -UNDEBUG -U_FORTIFY_SOURCE -fno-omit-frame-pointer -fsanitize=${TENSORHASH_SANITIZER})
    if("LIBRARY" IN_LIST ARGN AND TENSORHASH_SANITIZER STREQUAL "address")
        target_compile_options(${target} PRIVATE -fsanitize=undefined -fno-sanitize-recover=all)
    endif()
endfunction()
