// A turn that passes from chunk to chunk in order, whichever threads work on them.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime/pause.hpp"

namespace tensorhash::runtime {

/// Chunk i may go when its turn comes: after pass(i - 1). Only the thread with the turn passes it
/// on. A thread that waits for chunk i needs another one to be at an earlier chunk, so threads take
/// chunks in order and pass every turn.
class Turn {
public:
    void await(std::uint32_t chunk) const noexcept {
        // Acquire: pairs with the release in pass(). What earlier chunks wrote is visible.
        for (int i = 0; i < kSpins; ++i) {
            if (at_.load(std::memory_order_acquire) == chunk) return;
            pause_processor();
        }
        for (std::uint32_t now = at_.load(std::memory_order_acquire); now != chunk;
             now = at_.load(std::memory_order_acquire)) {
            at_.wait(now, std::memory_order_acquire);
        }
    }

    void pass(std::uint32_t chunk) noexcept {
        at_.store(chunk + 1, std::memory_order_release);  // pairs with the acquires in await()
        at_.notify_all();
    }

private:
    static constexpr int kSpins = 500;  // about 20 microseconds; sleeping takes longer

    std::atomic<std::uint32_t> at_{0};
    // Adjacent turns lie in different cache lines. Not by alignment: under AddressSanitizer, GCC 12
    // does not align such objects on the stack.
    [[maybe_unused]] std::array<std::byte, 60> apart_{};
};

}  // namespace tensorhash::runtime
