# The warnings of all our targets. They are errors only with TENSORHASH_WERROR,
# so that a newer compiler does not break a user's build.
function(tensorhash_enable_warnings target)
    target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion)
    # GCC 12 warns of an overlap in `"text" + std::string` that does not exist (GCC bug 105651).
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
        target_compile_options(${target} PRIVATE -Wno-restrict)
    endif()
    if(TENSORHASH_WERROR)
        target_compile_options(${target} PRIVATE -Werror)
    endif()
endfunction()
