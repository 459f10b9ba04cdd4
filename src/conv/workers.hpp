// Threads of a convolution: each takes the next free part until none is left.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>

#include "runtime/parallel.hpp"
#include "tensorhash/threads.hpp"

namespace tensorhash::conv {

/// Multiplications below which a second thread costs more than it gains.
inline constexpr double kWorkOfThread = 5e5;

/// The number of threads that pay off for this many multiplications in this many parts.
inline std::size_t worthwhile_threads(double multiplications, std::size_t parts) {
    auto const most =
        std::max<std::size_t>(1, std::min(static_cast<std::size_t>(num_threads()), parts));
    double const wanted = multiplications / kWorkOfThread + 1;
    return wanted < static_cast<double>(most) ? static_cast<std::size_t>(wanted) : most;
}

/// Runs work(next) on `threads` threads. next() returns the number of a part that no other thread
/// has, or `parts` when none is left. So each thread sets up its scratch once.
template <class Work>
void share_parts(std::size_t parts, std::size_t threads, Work&& work) {
    std::atomic<std::size_t> taken{0};
    // Relaxed: run_tasks() orders the parts' writes before its return.
    auto const next = [&] {
        return std::min(taken.fetch_add(1, std::memory_order_relaxed), parts);
    };
    runtime::run_tasks(threads, [&](std::size_t) { work(next); });
}

}  // namespace tensorhash::conv
