// Bodies of the flat table of packed coordinates.
#pragma once

#include "device/counters.hpp"
#include "device/grid.hpp"
#include "tensorhash/step/flat.hpp"

namespace tensorhash::device {

using step::FlatView;

/// What a flat table keeps on its device. Words only, as State.
struct FlatState {
    std::uint32_t claimed;       // slots
    std::uint32_t longest;       // probe
    std::uint32_t full;          // a key found no slot
    std::uint32_t out_of_range;  // a coordinate has no key
};

/// The table with the longest probe, which only the device knows.
TH_STEP FlatView with_longest(FlatView table, FlatState const* state) {
    table.longest = state->longest;
    return table;
}

/// Empties all slots. They are not zeros: an empty slot has row kNoRow.
struct ClearFlat {
    using Shared = NoShared;
    FlatView table;

    TH_STEP void operator()(NoShared&) const {
        for_rows(std::uint64_t{table.mask} + 1, [&](std::uint64_t slot) {
            table.slots[slot] = {step::kEmptyKey, step::kNoRow, 0};
        });
    }
};

TH_STEP std::uint64_t key_of(std::int32_t const* coords, std::uint64_t row) {
    std::int32_t const* const c = coords + 4 * row;
    return step::packed_or_empty(c[0], c[1], c[2], c[3]);
}

/// Each key's slot gets the smallest of its rows.
struct ClaimFlat {
    using Shared = NoShared;
    FlatView table;
    std::int32_t const* coords;  // [rows, 4]
    std::uint32_t first_row;     // row i of the batch is row first_row + i of the table
    FlatState* state;
    std::uint32_t rows;

    TH_STEP void operator()(NoShared&) const {
        std::uint32_t claimed = 0;
        std::uint32_t longest = 0;
        for_rows(rows, [&](std::uint64_t row) {
            std::uint64_t const key = key_of(coords, row);
            if (key == step::kEmptyKey) {
                raise_flag(&state->out_of_range);
                return;
            }
            auto const claim = step::flat_claim<step::Shared>(
                table, key, first_row + static_cast<std::uint32_t>(row));
            if (claim.full) {
                raise_flag(&state->full);
                return;
            }
            claimed += claim.claimed ? 1 : 0;
            longest = claim.steps > longest ? claim.steps : longest;
        });
        add_over_warp(&state->claimed, claimed);
        if (longest != 0) {
            fetch_max(&state->longest, longest);
        }
    }
};

TH_STEP std::uint32_t find_flat(FlatView const& table, std::uint64_t key) {
    std::uint32_t const start = step::flat_start(table, key);
    return key == step::kEmptyKey ? step::kNoRow
           : table.double_hash    ? step::flat_find(table, key, start)
                                  : step::flat_find_buckets<1>(table, key, start);
}

struct FindFlat {
    using Shared = NoShared;
    FlatView table;
    std::int32_t const* coords;
    FlatState const* state;
    std::uint32_t* found;  // [rows]: row or kNoRow
    std::uint32_t rows;

    TH_STEP void operator()(NoShared&) const {
        FlatView const view = with_longest(table, state);
        for_rows(rows,
                 [&](std::uint64_t row) { found[row] = find_flat(view, key_of(coords, row)); });
    }
};

/// Search method WARP_COOP: N lanes probe N slots of a key at once.
template <std::uint32_t N>
struct FindFlatByTile {
    static_assert(N % step::kBucketSlots == 0);
    using Shared = NoShared;
    using Lanes = Tile<N>;
    FlatView table;  // without double hashing
    std::int32_t const* coords;
    FlatState const* state;
    std::uint32_t* found;
    std::uint32_t rows;

    TH_STEP void operator()(NoShared&) const {
        FlatView const view = with_longest(table, state);
        // All lanes of a tile have the same `first`.
        for (std::uint64_t first = Thread::in_grid() - Lanes::rank(); first < rows;
             first += Thread::grid_size()) {
            std::uint64_t const mine = first + Lanes::rank();
            std::uint64_t const my_key = mine < rows ? key_of(coords, mine) : step::kEmptyKey;
            std::uint32_t my_answer = step::kNoRow;
            for (std::uint32_t turn = 0; turn < N; ++turn) {
                std::uint64_t const key = Lanes::shuffle(my_key, turn);
                std::uint32_t const answer = probe(view, key);
                my_answer = turn == Lanes::rank() ? answer : my_answer;
            }
            if (mine < rows) {
                found[mine] = my_answer;
            }
        }
    }

private:
    /// Collective over the tile, with the same key in all lanes.
    static TH_STEP std::uint32_t probe(FlatView const& view, std::uint64_t key) {
        if (key == step::kEmptyKey) {
            return step::kNoRow;
        }
        step::FlatPath const path(view, key, step::flat_start(view, key));
        for (std::uint64_t step = 0;; step += N) {
            std::uint64_t const mine = step + Lanes::rank();
            // A table of fewer slots than lanes has nothing for the last lanes.
            bool const is_slot = mine <= view.mask;
            step::FlatSlot const& slot =
                view.slots[path.slot(static_cast<std::uint32_t>(is_slot ? mine : 0))];
            std::uint32_t const ends =
                Lanes::ballot(is_slot && (slot.key == key || slot.key == step::kEmptyKey));
            if (ends != 0) {
                return Lanes::shuffle(slot.row, step::lowest_bit(ends));
            }
            if (step + N > view.longest) {
                return step::kNoRow;
            }
        }
    }
};

}  // namespace tensorhash::device
