// Bodies of kernel maps: probe and count, scan, write. Flat, or pruned by the coarse cells that
// hold anything. The host reads the offsets of the groups once, to size the result.
#pragma once

#include "device/flat.hpp"
#include "device/segments.hpp"

namespace tensorhash::device {

/// Queries times offsets. A segment never reaches into the next offset, so pairs come out grouped
/// by offset, ascending by query.
struct PairGrid {
    std::uint32_t rows;     // queries
    std::uint32_t offsets;  // of the kernel

    struct Pair {
        std::uint32_t offset;
        std::uint32_t row;
        bool is_row;
    };
    TH_STEP std::uint32_t segments_each() const {
        return static_cast<std::uint32_t>(segments_of(rows));
    }
    TH_STEP std::uint64_t segments() const { return std::uint64_t{segments_each()} * offsets; }
    /// The number of threads, with a gap behind the last query of each offset.
    TH_STEP std::uint64_t size() const { return segments() * kSegment; }
    TH_STEP Pair at(std::uint64_t i) const {
        std::uint64_t const segment = i / kSegment;
        auto const offset = static_cast<std::uint32_t>(segment / segments_each());
        std::uint64_t const row = i - std::uint64_t{offset} * segments_each() * kSegment;
        return {offset, static_cast<std::uint32_t>(row), row < rows};
    }
    TH_STEP std::uint64_t place(Pair const& pair) const {
        return std::uint64_t{pair.offset} * rows + pair.row;
    }
};

/// The coarse cell of each coordinate (b, x, y, z). Cells are 2^bits wide.
struct ToCells {
    using Shared = NoShared;
    std::int32_t const* coords;
    std::int32_t* cells;
    std::uint32_t bits;
    std::uint64_t rows;

    TH_STEP void operator()(NoShared&) const {
        for_rows(rows * 4,
                 [&](std::uint64_t i) { cells[i] = i % 4 == 0 ? coords[i] : coords[i] >> bits; });
    }
};

/// Which of the 27 coarse cells around a query hold anything, as bits.
struct CoarseMasks {
    using Shared = NoShared;
    FlatView table;  // of coarse cells
    FlatState const* state;
    std::int32_t const* queries;  // [rows, 4]
    std::uint32_t* masks;         // [rows]
    std::uint32_t bits;
    std::uint32_t rows;

    TH_STEP void operator()(NoShared&) const {
        FlatView const view = with_longest(table, state);
        for_rows(rows, [&](std::uint64_t row) {
            std::int32_t const* const q = queries + 4 * row;
            std::uint32_t mask = 0;
            for (std::int32_t cell = 0; cell < 27; ++cell) {
                std::uint64_t const key = step::packed_or_empty<std::int32_t>(
                    q[0], (q[1] >> bits) + cell / 9 - 1, (q[2] >> bits) + cell / 3 % 3 - 1,
                    (q[3] >> bits) + cell % 3 - 1);
                bool const holds = find_flat(view, key) != step::kNoRow;
                mask |= (holds ? 1u : 0u) << cell;
            }
            masks[row] = mask;
        });
    }
};

/// found[offset, row] becomes the input row that the offset joins with the query, or kNoRow. Counts
/// the pairs of each segment.
struct ProbeOffsets {
    using Shared = NoShared;
    FlatView table;
    FlatState const* state;
    std::int32_t const* queries;  // [rows, 4]
    std::int32_t const* offsets;  // [offsets, 4]
    std::int32_t scale[4];        // of the queries
    std::uint32_t const* masks;  // null: no coarse cells. Else the kernel reaches one cell at most.
    std::uint32_t bits;
    std::uint32_t* found;
    std::uint64_t* counts;  // [segments]
    PairGrid grid;

    TH_STEP void operator()(NoShared&) const {
        FlatView const view = with_longest(table, state);
        count_segments(
            grid.size(),
            [&](std::uint64_t i, bool) {
                PairGrid::Pair const pair = grid.at(i);
                if (!pair.is_row) {
                    return false;
                }
                std::uint32_t const at = probe(view, pair);
                found[grid.place(pair)] = at;
                return at != step::kNoRow;
            },
            [&](std::uint64_t segment, std::uint32_t count) { counts[segment] = count; });
    }

private:
    TH_STEP std::uint32_t probe(FlatView const& view, PairGrid::Pair const& pair) const {
        std::int32_t const* const q = queries + 4 * std::uint64_t{pair.row};
        std::int32_t const* const o = offsets + 4 * std::uint64_t{pair.offset};
        if (masks != nullptr && !may_hold(q, o, masks[pair.row])) {
            return step::kNoRow;
        }
        return find_flat(view, step::shifted_or_empty(q, 4, scale, o));
    }
    TH_STEP bool may_hold(std::int32_t const* q, std::int32_t const* o, std::uint32_t mask) const {
        auto const cell = [&](std::uint32_t axis) {
            std::int64_t const moved = std::int64_t{q[axis]} + o[axis];
            return static_cast<std::uint32_t>((moved >> bits) - (q[axis] >> bits) + 1);
        };
        return (mask >> (cell(1) * 9 + cell(2) * 3 + cell(3)) & 1) != 0;
    }
};

/// Writes each pair at its rank.
struct WritePairs {
    using Shared = NoShared;
    std::uint32_t const* found;
    std::uint64_t const* ranks;  // the counts, scanned
    std::int32_t* in_rows;
    std::int32_t* out_rows;
    PairGrid grid;

    TH_STEP void operator()(NoShared&) const {
        rank_segments(
            grid.size(), ranks,
            [&](std::uint64_t i, bool) {
                PairGrid::Pair const pair = grid.at(i);
                return pair.is_row && found[grid.place(pair)] != step::kNoRow;
            },
            [&](std::uint64_t i, std::uint64_t rank) {
                PairGrid::Pair const pair = grid.at(i);
                in_rows[rank] = static_cast<std::int32_t>(found[grid.place(pair)]);
                out_rows[rank] = static_cast<std::int32_t>(pair.row);
            });
    }
};

/// Where the pairs of each offset begin, and where the last ones end.
struct WriteOffsets {
    using Shared = NoShared;
    std::uint64_t const* ranks;  // the counts, scanned
    std::uint64_t const* total;
    std::int64_t* begins;  // [offsets + 1]
    PairGrid grid;

    TH_STEP void operator()(NoShared&) const {
        for_rows(std::uint64_t{grid.offsets} + 1, [&](std::uint64_t offset) {
            bool const is_end = offset == grid.offsets || grid.rows == 0;
            begins[offset] =
                static_cast<std::int64_t>(is_end ? *total : ranks[offset * grid.segments_each()]);
        });
    }
};

}  // namespace tensorhash::device
