# The warnings every target of ours is compiled with; errors only with TENSORHASH_WERROR,
# so that a compiler newer than ours never breaks a user's install.
function(tensorhash_enable_warnings target)
    target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion)
    if(TENSORHASH_WERROR)
        target_compile_options(${target} PRIVATE -Werror)
    endif()
endfunction()
