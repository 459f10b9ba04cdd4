// Bodies that look keys up: one thread per row, or one tile of lanes per row.
#pragma once

#include "device/state.hpp"
#include "device/tiles.hpp"
#include "tensorhash/step/find.hpp"

namespace tensorhash::device {

/// Writes what a lookup found. An index in which a probe has no end is reported, never waited for.
TH_STEP void write_match(BatchView const& batch, std::uint64_t row, step::Match const& at,
                         std::uint32_t* broken) {
    bool const lost = at.buf_index == step::kUndecided;
    if (lost) {
        raise_flag(broken);
    }
    std::uint32_t const buf_index = lost ? step::kNotFound : at.buf_index;
    batch.buf_indices[row] = buf_index;
    batch.mask[row] = buf_index != step::kNotFound ? 1 : 0;
    if (batch.positions != nullptr) {
        batch.positions[row] = at.position;
    }
}

/// find(). `batch.positions` may be null.
template <class Reader>
struct FindRows {
    using Shared = NoShared;
    IndexView view;
    BatchView batch;
    State* state;
    std::uint32_t rows;

    TH_STEP void operator()(NoShared&) const {
        using Index = typename step::IndexOf<Reader, step::Exclusive>::type;
        Index const index(view);
        BatchView const b = with_base(batch, state);
        for_rows(rows, [&](std::uint64_t row) {
            std::uint64_t const hash = index.hash(b.keys, row);
            write_match(b, row, step::find_one(index, hash, b, row), &state->broken);
        });
    }
};

/// N lanes per row. Each lane hashes one row of its own, so that keys are read side by side. Then
/// the tile takes its N rows in turn: work(row, hash, is_mine).
template <std::uint32_t N, class Index, class Work>
TH_STEP void for_rows_by_tile(Index const& index, BatchView const& batch, std::uint32_t rows,
                              Work const& work) {
    using Lanes = Tile<N>;
    // All lanes of a tile have the same `first`.
    for (std::uint64_t first = Thread::in_grid() - Lanes::rank(); first < rows;
         first += Thread::grid_size()) {
        std::uint64_t const mine = first + Lanes::rank();
        std::uint64_t const my_hash = mine < rows ? index.hash(batch.keys, mine) : 0;
        std::uint32_t const turns = rows - first < N ? static_cast<std::uint32_t>(rows - first) : N;
        for (std::uint32_t turn = 0; turn < turns; ++turn) {
            work(first + turn, Lanes::shuffle(my_hash, turn), turn == Lanes::rank());
        }
    }
}

template <class Reader, std::uint32_t N>
struct FindRowsByTile {
    using Shared = NoShared;
    IndexView view;
    BatchView batch;
    State* state;
    std::uint32_t rows;

    TH_STEP void operator()(NoShared&) const {
        typename step::IndexOf<Reader, ByTile<N, step::Exclusive>>::type const index(view);
        BatchView const b = with_base(batch, state);
        for_rows_by_tile<N>(index, b, rows,
                            [&](std::uint64_t row, std::uint64_t hash, bool is_mine) {
                                step::Match const at = step::find(index, hash, b, row);
                                if (is_mine) {
                                    write_match(b, row, at, &state->broken);
                                }
                            });
    }
};

/// Counts the rows with mask 0.
struct CountMissing {
    using Shared = NoShared;
    unsigned char const* mask;
    std::uint32_t* missing;
    std::uint32_t rows;

    TH_STEP void operator()(NoShared&) const {
        std::uint32_t here = 0;
        for_rows(rows, [&](std::uint64_t row) { here += mask[row] == 0 ? 1 : 0; });
        add_over_warp(missing, here);
    }
};

}  // namespace tensorhash::device
