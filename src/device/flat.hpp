// Bodies of the flat table of packed coordinates: rows of up to four columns.
#pragma once

#include "device/coord_rows.hpp"
#include "tensorhash/step/flat.hpp"

namespace tensorhash::device {

using step::FlatView;

/// What an index of rows keeps on its device. Words only, as State.
struct FlatState {
    std::uint32_t claimed;       // slots
    std::uint32_t longest;       // probe
    std::uint32_t full;          // a key found no slot
    std::uint32_t out_of_range;  // a row has no packed key
};

/// The table with the longest probe, which only the device knows.
TH_STEP FlatView with_longest(FlatView table, FlatState const* state) {
    table.longest = state->longest;
    return table;
}

TH_STEP void raise_longest(FlatState* state, std::uint32_t longest) {
    if (longest != 0) {
        fetch_max(&state->longest, longest);
    }
}

TH_STEP std::uint64_t key_of(CoordRow const& row) {
    return step::packed_or_empty(row.numbers[0], row.numbers[1], row.numbers[2], row.numbers[3]);
}

/// The key of a row that may have int64 numbers.
TH_STEP std::uint64_t key_at(RowsView const& rows, std::uint64_t row) {
    auto const at = [&](std::uint32_t c) {
        return c < rows.columns ? rows.at(row, c) : std::int64_t{0};
    };
    return step::packed_or_empty(at(0), at(1), at(2), at(3));
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

/// What the claims of one thread add up to.
struct SlotClaims {
    std::uint32_t claimed = 0;
    std::uint32_t longest = 0;

    /// Calls claim() unless the table is full: then every further probe would visit all slots.
    template <class Claim>
    TH_STEP void add(FlatState* state, Claim const& claim) {
        if (step::Shared::load(&state->full) != 0) {
            return;
        }
        auto const one = claim();
        if (one.full) {
            raise_flag(&state->full);
            return;
        }
        claimed += one.claimed ? 1 : 0;
        longest = one.steps > longest ? one.steps : longest;
    }
    /// Collective over the warp.
    TH_STEP void add_to(FlatState* state) const {
        add_over_warp(&state->claimed, claimed);
        raise_longest(state, longest);
    }
};

/// Each key's slot gets the smallest of its rows.
struct ClaimFlat {
    using Shared = NoShared;
    FlatView table;
    std::int32_t const* coords;  // [rows, columns]
    std::uint32_t columns;
    std::uint32_t first_row;  // row i of the batch is row first_row + i of the table
    FlatState* state;
    std::uint32_t rows;

    TH_STEP void operator()(NoShared&) const {
        SlotClaims claims;
        for_rows(rows, [&](std::uint64_t row) {
            std::uint64_t const key = key_of(load_row(coords, row, columns));
            if (key == step::kEmptyKey) {
                raise_flag(&state->out_of_range);
                return;
            }
            claims.add(state, [&] {
                return step::flat_claim<step::Shared>(table, key,
                                                      first_row + static_cast<std::uint32_t>(row));
            });
        });
        claims.add_to(state);
    }
};

/// Puts the keys of a table into a larger one, which is empty.
struct RehashFlat {
    using Shared = NoShared;
    FlatView from;
    FlatView to;
    FlatState* state;  // of the larger one

    TH_STEP void operator()(NoShared&) const {
        std::uint32_t longest = 0;
        for_rows(std::uint64_t{from.mask} + 1, [&](std::uint64_t at) {
            step::FlatSlot const slot = from.slots[at];
            if (slot.key != step::kEmptyKey) {
                auto const claim = step::flat_claim<step::Shared>(to, slot.key, slot.row);
                longest = claim.steps > longest ? claim.steps : longest;
            }
        });
        raise_longest(state, longest);
    }
};

/// Undoes the claims of the last batch. No earlier key probed past a later one, so emptying their
/// slots restores the table.
struct DropFlat {
    using Shared = NoShared;
    FlatView table;
    std::uint32_t first_row;

    TH_STEP void operator()(NoShared&) const {
        for_rows(std::uint64_t{table.mask} + 1, [&](std::uint64_t at) {
            step::FlatSlot& slot = table.slots[at];
            if (slot.key != step::kEmptyKey && slot.row >= first_row) {
                slot = {step::kEmptyKey, step::kNoRow, 0};
            }
        });
    }
};

TH_STEP std::uint32_t find_flat(FlatView const& table, std::uint64_t key) {
    std::uint32_t const start = step::flat_start(table, key);
    return key == step::kEmptyKey ? step::kNoRow
           : table.double_hash    ? step::flat_find(table, key, start)
                                  : step::flat_find_buckets<1>(table, key, start);
}

/// Search method WARP_COOP: N lanes probe N slots of a key at once.
template <std::uint32_t N>
struct FindFlatByTile {
    static_assert(N % step::kBucketSlots == 0);
    using Shared = NoShared;
    using Lanes = Tile<N>;
    FlatView table;  // without double hashing
    RowsView queries;
    FlatState const* state;
    std::uint32_t* found;  // [rows]: row or kNoRow
    std::uint32_t rows;

    TH_STEP void operator()(NoShared&) const {
        FlatView const view = with_longest(table, state);
        // All lanes of a tile have the same `first`.
        for (std::uint64_t first = Thread::in_grid() - Lanes::rank(); first < rows;
             first += Thread::grid_size()) {
            std::uint64_t const mine = first + Lanes::rank();
            std::uint64_t const my_key = mine < rows ? key_at(queries, mine) : step::kEmptyKey;
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
