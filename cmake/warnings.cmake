# The warnings every target of ours is compiled with; errors only with TENSORHASH_WERROR,
# so that a compiler newer than ours never breaks a user's install.
function(tensorhash_enable_warnings target)
    target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion)
    # GCC 12 sees an overlap in `"text" + std::string` that is not there (its bug 105651).
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
        target_compile_options(${target} PRIVATE -Wno-restrict)
    endif()
    if(TENSORHASH_WERROR)
        target_compile_options(${target} PRIVATE -Werror)
    endif()
endfunction()
