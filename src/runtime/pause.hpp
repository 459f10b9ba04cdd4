// Tells the processor that a loop waits.
#pragma once

#if !defined(__x86_64__)
#include <thread>
#endif

namespace tensorhash::runtime {

inline void pause_processor() noexcept {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#else
    std::this_thread::yield();
#endif
}

}  // namespace tensorhash::runtime
