// Bodies of kernel maps: probe and count, scan, write. Flat, or pruned by the coarse cells that
// hold anything. The host reads the offsets of the groups once, to size the result.
#pragma once

#include "device/row_index.hpp"
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

/// The out rows of a map. An offset joins `row * scale + offset`, in 64 bits, with the equal in
/// row.
struct MapQueries {
    std::int32_t const* rows;      // [rows, columns]
    unsigned char const* outside;  // [rows]: rows without pairs; null: none
    std::int32_t scale[kRowColumns];
    std::uint32_t columns;

    TH_STEP std::int64_t scaled(std::uint64_t row, std::uint32_t c) const {
        return std::int64_t{rows[row * columns + c]} * scale[c];
    }
    TH_STEP bool is_inside(std::uint64_t row) const {
        return outside == nullptr || outside[row] == 0;
    }
};

inline constexpr std::uint32_t kCoarseAxes = 3;

/// The box of coarse cells that a kernel reaches from the cell of its center. Cells are 2^bits
/// wide.
struct CoarseBox {
    std::uint32_t bits;
    std::int32_t half[kCoarseAxes];   // of the kernel
    std::int32_t reach[kCoarseAxes];  // cells to each side
    std::uint32_t cells;              // of the box

    /// Words of 32 cells per query.
    TH_STEP std::uint32_t words() const { return (cells + 31) / 32; }
    /// From the cell of the center to `cell`, along an axis.
    TH_STEP std::int32_t step_to(std::uint32_t cell, std::uint32_t axis) const {
        auto const width = [&](std::uint32_t a) {
            return static_cast<std::uint32_t>(2 * reach[a] + 1);
        };
        std::uint32_t const rest = axis == 0   ? cell / (width(1) * width(2))
                                   : axis == 1 ? cell / width(2) % width(1)
                                               : cell % width(2);
        return static_cast<std::int32_t>(rest) - reach[axis];
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

/// Which cells of a query's box hold anything, as bits. One thread per word.
struct CoarseMasks {
    using Shared = NoShared;
    RowIndexView index;  // of coarse cells
    MapQueries queries;
    CoarseBox box;
    std::uint32_t* masks;   // [rows, words]
    std::uint64_t* probes;  // counts lookups
    std::uint64_t rows;

    TH_STEP void operator()(NoShared&) const {
        RowLookup const lookup(index);
        std::uint64_t asked = 0;
        for_rows(rows * box.words(), [&](std::uint64_t i) {
            std::uint64_t const row = i / box.words();
            std::uint32_t const first = static_cast<std::uint32_t>(i % box.words()) * 32;
            std::uint32_t mask = 0;
            for (std::uint32_t bit = 0; bit < 32 && first + bit < box.cells; ++bit) {
                CoordRow cell;
                if (reaches(row, first + bit, cell)) {
                    ++asked;
                    mask |= (lookup.find(cell) != step::kNoRow ? 1u : 0u) << bit;
                }
            }
            masks[i] = mask;
        });
        if (asked != 0) {
            fetch_add(probes, asked);
        }
    }

private:
    /// Does the kernel of a query meet this cell of its box? A cell outside int32 has no rows.
    TH_STEP bool reaches(std::uint64_t row, std::uint32_t cell, CoordRow& out) const {
        bool meets = queries.is_inside(row);
        bool const fits = make_row(
            kCoarseAxes + 1,
            [&](std::uint32_t c) {
                if (c == 0) {
                    return queries.scaled(row, 0);
                }
                std::int64_t const center = queries.scaled(row, c);
                std::int64_t const at = (center >> box.bits) + box.step_to(cell, c - 1);
                meets = meets && (center - box.half[c - 1]) >> box.bits <= at &&
                        at <= (center + box.half[c - 1]) >> box.bits;
                return at;
            },
            out);
        return meets && fits;
    }
};

/// found[offset, row] becomes the input row that the offset joins with the query, or kNoRow. Counts
/// the pairs of each segment.
struct ProbeOffsets {
    using Shared = NoShared;
    RowIndexView index;
    MapQueries queries;
    std::int32_t const* offsets;  // [offsets, columns]
    std::uint32_t const* masks;   // of CoarseMasks; null: no coarse cells
    CoarseBox box;
    std::uint32_t* found;
    std::uint64_t* counts;  // [segments]
    std::uint64_t* probes;  // counts lookups, if there are coarse cells
    PairGrid grid;

    TH_STEP void operator()(NoShared&) const {
        RowLookup const lookup(index);
        std::uint64_t asked = 0;
        count_segments(
            grid.size(),
            [&](std::uint64_t i, bool) {
                PairGrid::Pair const pair = grid.at(i);
                if (!pair.is_row) {
                    return false;
                }
                std::int32_t const* const offset =
                    offsets + std::uint64_t{pair.offset} * queries.columns;
                std::uint32_t at = step::kNoRow;
                if (queries.is_inside(pair.row) && may_hold(pair.row, offset)) {
                    ++asked;
                    at = probe(lookup, pair.row, offset);
                }
                found[grid.place(pair)] = at;
                return at != step::kNoRow;
            },
            [&](std::uint64_t segment, std::uint32_t count) { counts[segment] = count; });
        if (masks != nullptr && asked != 0) {
            fetch_add(probes, asked);
        }
    }

private:
    TH_STEP std::uint32_t probe(RowLookup const& lookup, std::uint64_t row,
                                std::int32_t const* offset) const {
        CoordRow moved;
        bool const fits = make_row(
            queries.columns, [&](std::uint32_t c) { return queries.scaled(row, c) + offset[c]; },
            moved);
        return fits ? lookup.find(moved) : step::kNoRow;
    }
    /// Does the cell of this offset hold anything?
    TH_STEP bool may_hold(std::uint64_t row, std::int32_t const* offset) const {
        if (masks == nullptr) {
            return true;
        }
        std::uint32_t cell = 0;
        for (std::uint32_t axis = 0; axis < kCoarseAxes; ++axis) {
            std::int64_t const center = queries.scaled(row, axis + 1);
            std::int64_t const moved = (center + offset[axis + 1]) >> box.bits;
            auto const step = static_cast<std::int32_t>(moved - (center >> box.bits));
            cell = cell * static_cast<std::uint32_t>(2 * box.reach[axis] + 1) +
                   static_cast<std::uint32_t>(step + box.reach[axis]);
        }
        return (masks[row * box.words() + cell / 32] >> (cell % 32) & 1) != 0;
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
