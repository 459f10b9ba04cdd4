// Bodies that fill a new index with the entries of a table.
#pragma once

#include "device/state.hpp"
#include "tensorhash/step/insert.hpp"

namespace tensorhash::device {

/// Places the live entries of [0, top) into an empty index.
template <class Reader>
struct PlaceLive {
    using Shared = NoShared;
    IndexView view;
    std::uint32_t const* live;
    State* state;

    TH_STEP void operator()(NoShared&) const {
        typename step::IndexOf<Reader, step::Shared>::type const index(view);
        for_rows(state->top, [&](std::uint64_t row) {
            if ((live[row / 32] >> (row % 32) & 1) == 0) {
                return;
            }
            std::uint64_t const hash = index.hash(view.key_buffer, row);
            if (!step::place(index, hash, static_cast<std::uint32_t>(row))) {
                raise_flag(&state->broken);
            }
        });
    }
};

/// One thread: a new index has no erased slots.
struct FinishRebuild {
    using Shared = NoShared;
    State* state;

    TH_STEP void operator()(NoShared&) const {
        if (Thread::in_grid() == 0) {
            state->occupied = state->top - state->free;
        }
    }
};

/// One thread: the entries have moved together, so no index below the top is free.
struct FinishCompact {
    using Shared = NoShared;
    State* state;

    TH_STEP void operator()(NoShared&) const {
        if (Thread::in_grid() == 0) {
            state->top -= state->free;
            state->free = 0;
        }
    }
};

/// Sets the live bits of [0, top) and clears the rest of the last word. One thread per word.
struct SetLive {
    using Shared = NoShared;
    State const* state;
    std::uint32_t* live;

    TH_STEP void operator()(NoShared&) const {
        std::uint32_t const top = state->top;
        for_rows((top + 31) / 32, [&](std::uint64_t word) {
            std::uint32_t const left = top - static_cast<std::uint32_t>(word) * 32;
            live[word] = left >= 32 ? ~0u : (1u << left) - 1;
        });
    }
};

}  // namespace tensorhash::device
