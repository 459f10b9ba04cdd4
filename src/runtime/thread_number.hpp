// A number for each thread of the process. Unlike std::thread::id, no later thread gets it again.
#pragma once

#include <atomic>
#include <cstdint>

namespace tensorhash::runtime {

inline std::uint64_t thread_number() noexcept {
    static constinit std::atomic<std::uint64_t> threads = 0;
    thread_local std::uint64_t const mine = threads.fetch_add(1, std::memory_order_relaxed);
    return mine;
}

}  // namespace tensorhash::runtime
