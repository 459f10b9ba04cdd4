// Bodies that give back the buffer rows behind the last live entry.
#pragma once

#include <cstdint>

#include "device/state.hpp"

namespace tensorhash::device {

/// Raises `end` to one past the last live index. One thread per word of live bits.
struct FindEndOfLive {
    using Shared = NoShared;
    std::uint32_t const* live;
    std::uint32_t* end;  // zero at first
    std::uint64_t words;

    TH_STEP void operator()(NoShared&) const {
        for_rows(words, [&](std::uint64_t word) {
            std::uint32_t bits = live[word];
            if (bits == 0) {
                return;
            }
            // Sets all bits below the highest one; their number is its position plus one.
            for (std::uint32_t shift = 1; shift < 32; shift *= 2) {
                bits |= bits >> shift;
            }
            fetch_max(end, static_cast<std::uint32_t>(word) * 32 + count_bits(bits));
        });
    }
};

/// One thread: all indices from `end` on were free, and are forgotten.
struct FinishShrink {
    using Shared = NoShared;
    State* state;
    std::uint32_t end;

    TH_STEP void operator()(NoShared&) const {
        if (Thread::in_grid() == 0) {
            state->free -= state->top - end;
            state->top = end;
        }
    }
};

}  // namespace tensorhash::device
