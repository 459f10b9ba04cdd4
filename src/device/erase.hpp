// Bodies that erase: keys are located as by find, the first row of each key wins, slots are
// released, and freed indices are pushed onto their stack in row order.
#pragma once

#include "device/segments.hpp"
#include "device/state.hpp"
#include "tensorhash/step/erase.hpp"

namespace tensorhash::device {

/// Clears the live bits of the located entries. Finds out whether two rows erase the same entry.
struct ClearLive {
    using Shared = NoShared;
    BatchView batch;
    State* state;
    std::uint32_t* live;
    std::uint32_t rows;

    TH_STEP void operator()(NoShared&) const {
        bool repeats = false;
        for_rows(rows, [&](std::uint64_t row) {
            if (batch.mask[row] != 0) {
                std::uint32_t const buf_index = batch.buf_indices[row];
                std::uint32_t const bit = 1u << (buf_index % 32);
                repeats |= (fetch_and(&live[buf_index / 32], ~bit) & bit) == 0;
            }
        });
        if (repeats) {
            raise_flag(&state->has_repeats);
        }
    }
};

/// Marks each slot with the earliest row that erases it, if rows repeat.
template <class Reader>
struct MarkRows {
    using Shared = NoShared;
    IndexView view;
    BatchView batch;
    State const* state;
    std::uint32_t rows;

    TH_STEP void operator()(NoShared&) const {
        if (state->has_repeats == 0) {
            return;
        }
        typename step::IndexOf<Reader, step::Shared>::type const index(view);
        BatchView const b = with_base(batch, state);
        for_rows(rows, [&](std::uint64_t row) {
            if (b.mask[row] != 0) {
                step::mark(index, b, row);
            }
        });
    }
};

/// Releases the slots of the rows that erase, and counts these rows per segment. Rows that repeat
/// erase if their mark holds. A slot that is already released carries no mark.
template <class Reader>
struct ReleaseRows {
    using Shared = NoShared;
    IndexView view;
    BatchView batch;
    State* state;
    std::uint32_t* counts;  // [segments_of(rows)]
    std::uint32_t rows;

    TH_STEP void operator()(NoShared&) const {
        typename step::IndexOf<Reader, step::Shared>::type const index(view);
        BatchView const b = with_base(batch, state);
        bool const repeats = state->has_repeats != 0;
        std::uint32_t to_erased = 0;
        count_segments(
            rows,
            [&](std::uint64_t row, bool is_row) {
                bool const located = is_row && b.mask[row] != 0;
                bool const erases = located && (!repeats || step::holds_claim(index, b, row));
                if (erases) {
                    auto const released = step::release(index, b.positions[row]);
                    to_erased += released == step::Released::ToErased ? 1 : 0;
                } else if (located) {
                    b.mask[row] = 0;
                }
                return erases;
            },
            [&](std::uint64_t segment, std::uint32_t count) {
                counts[segment] = count;
                fetch_add(&state->released, count);
            });
        add_over_warp(&state->to_erased, to_erased);
    }
};

/// Undoes the claims of a batch that will not be finished: each new key's earliest row releases it.
template <class Reader>
struct ReleaseClaims {
    using Shared = NoShared;
    IndexView view;
    BatchView batch;
    State* state;
    std::uint32_t rows;

    TH_STEP void operator()(NoShared&) const {
        typename step::IndexOf<Reader, step::Shared>::type const index(view);
        BatchView const b = with_base(batch, state);
        std::uint32_t to_erased = 0;
        for_rows(rows, [&](std::uint64_t row) {
            if (step::holds_claim(index, b, row)) {
                auto const released = step::release(index, b.positions[row]);
                to_erased += released == step::Released::ToErased ? 1 : 0;
            }
        });
        // Slots that were empty before the claims may be erased now.
        add_over_warp(&state->occupied, to_erased);
    }
};

/// Pushes the freed indices in row order.
struct PushFreed {
    using Shared = NoShared;
    BatchView batch;
    State const* state;
    std::uint32_t const* ranks;  // the counts of ReleaseRows, scanned
    std::uint32_t* free;         // the free stack, bottom first
    std::uint32_t rows;

    TH_STEP void operator()(NoShared&) const {
        std::uint32_t const held = state->free;
        rank_segments(
            rows, ranks,
            [&](std::uint64_t row, bool is_row) { return is_row && batch.mask[row] != 0; },
            [&](std::uint64_t row, std::uint32_t rank) {
                free[held + rank] = batch.buf_indices[row];
            });
    }
};

/// One thread: the entries are gone.
struct FinishErase {
    using Shared = NoShared;
    State* state;

    TH_STEP void operator()(NoShared&) const {
        if (Thread::in_grid() != 0) {
            return;
        }
        state->free += state->released;
        state->occupied -= state->released - state->to_erased;
        state->released = 0;
        state->to_erased = 0;
        state->has_repeats = 0;
    }
};

}  // namespace tensorhash::device
