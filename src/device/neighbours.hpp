// Bodies that search points within a radius, in a grid of cells a little wider than the radius:
// each query visits its own cell and those around it. Cells have at most three axes; the distance
// has all of them.
#pragma once

#include <cstdint>

#include "device/points.hpp"
#include "device/row_index.hpp"

namespace tensorhash::device {

inline constexpr std::uint32_t kGridAxes = 3;
/// A batch, then the cell along each axis.
inline constexpr std::uint32_t kCellColumns = 1 + kGridAxes;

/// Brings numbers to the scale of the search.
struct ScaleNumbers {
    using Shared = NoShared;
    double* numbers;
    double scale;
    std::uint64_t count;

    TH_STEP void operator()(NoShared&) const {
        for_rows(count, [&](std::uint64_t i) { numbers[i] *= scale; });
    }
};

/// The cell of each point, counted from `origin`. Points far away share the last cell. A search
/// there is slow, but it misses no point: neighbours are still in the same or in adjacent cells.
struct ToGridCells {
    using Shared = NoShared;
    double const* points;        // [rows, axes]
    double const* origin;        // [axes]
    std::uint32_t const* batch;  // [rows]: the number of the batch, or kNotFound; null: all are 0
    std::int32_t* cells;         // [rows, kCellColumns]
    std::uint64_t axes;
    double width;  // of a cell
    std::uint64_t rows;

    TH_STEP void operator()(NoShared&) const {
        for_rows(rows * kCellColumns, [&](std::uint64_t i) {
            std::uint64_t const row = i / kCellColumns;
            std::uint64_t const c = i % kCellColumns;
            if (c == 0) {
                cells[i] = batch != nullptr ? static_cast<std::int32_t>(batch[row]) : 0;
            } else {
                cells[i] = c <= axes ? cell_along(row, c - 1) : 0;
            }
        });
    }

private:
    TH_STEP std::int32_t cell_along(std::uint64_t row, std::uint64_t axis) const {
        constexpr double kFar = 0x1p29;
        double const from_origin = points[row * axes + axis] - origin[axis];
        double const cell = round_down(from_origin / width);
        return static_cast<std::int32_t>(cell < -kFar ? -kFar : cell > kFar ? kFar : cell);
    }
};

/// Points listed cell by cell, and queries.
struct RadiusGrid {
    RowIndexView cells;           // of the points: finds the first point of a cell
    std::uint64_t const* starts;  // [points + 1]: by the first point of a cell
    std::uint32_t const* order;   // [points]: cell by cell
    double const* points;
    double const* queries;
    std::int32_t const* query_cells;
    std::uint64_t axes;
    double radius;

    /// Calls visit(squared distance, row) for each point within the radius of a query.
    template <class Visit>
    TH_STEP void for_each_near(std::uint64_t query, Visit const& visit) const {
        RowLookup const lookup(cells);
        double const reach = radius * (1 + 0x1p-40);  // wider than the error of a distance
        std::uint32_t around = 1;
        for (std::uint32_t axis = 0; axis < kGridAxes; ++axis) {
            around *= axis < axes ? 3 : 1;
        }
        for (std::uint32_t i = 0; i < around; ++i) {
            std::uint32_t const first = lookup.find(cell_around(query, i));
            if (first == step::kNoRow) {
                continue;
            }
            for (std::uint64_t at = starts[first]; at < starts[first + 1]; ++at) {
                std::uint32_t const row = order[at];
                double const squared = squared_between(queries + query * axes,
                                                       points + std::uint64_t{row} * axes, axes);
                // The reported distance decides; its square is a quick test.
                if (squared <= reach * reach && square_root(squared) <= radius) {
                    visit(squared, row);
                }
            }
        }
    }

private:
    /// The digits of `i`, base 3, are the steps along the axes.
    TH_STEP CoordRow cell_around(std::uint64_t query, std::uint32_t i) const {
        CoordRow cell = load_row(query_cells, query, kCellColumns);
        for (std::uint32_t c = 1; c < kCellColumns; ++c) {
            bool const is_axis = c <= axes;
            cell.numbers[c] += is_axis ? static_cast<std::int32_t>(i % 3) - 1 : 0;
            i /= is_axis ? 3 : 1;
        }
        return cell;
    }
};

/// The number of neighbours of each query, at most `most`.
struct CountNeighbours {
    using Shared = NoShared;
    RadiusGrid grid;
    std::uint64_t most;
    std::uint64_t* counts;  // [queries]
    std::uint64_t queries;

    TH_STEP void operator()(NoShared&) const {
        for_rows(queries, [&](std::uint64_t query) {
            std::uint64_t count = 0;
            grid.for_each_near(query, [&](double, std::uint32_t) { ++count; });
            counts[query] = count < most ? count : most;
        });
    }
};

/// The nearest neighbours of one query, in a heap with the farthest on top; of equally far ones the
/// higher row is farther.
struct NeighbourHeap {
    std::int64_t* rows;
    double* squares;
    std::uint64_t room;
    std::uint64_t size = 0;

    TH_STEP bool is_before(double squared, std::int64_t row, std::uint64_t other) const {
        return squared < squares[other] || (squared == squares[other] && row < rows[other]);
    }
    TH_STEP void put(std::uint64_t at, double squared, std::int64_t row) {
        squares[at] = squared;
        rows[at] = row;
    }
    TH_STEP void insert(double squared, std::int64_t row) {
        if (size == room) {
            if (room != 0 && is_before(squared, row, 0)) {
                sink(squared, row, size);
            }
            return;
        }
        std::uint64_t at = size++;
        while (at > 0 && !is_before(squared, row, (at - 1) / 2)) {
            std::uint64_t const parent = (at - 1) / 2;
            put(at, squares[parent], rows[parent]);
            at = parent;
        }
        put(at, squared, row);
    }
    /// Puts a neighbour in the place of the top of a heap of this size.
    TH_STEP void sink(double squared, std::int64_t row, std::uint64_t of) {
        std::uint64_t at = 0;
        for (std::uint64_t next = 1; next < of; next = 2 * at + 1) {
            if (next + 1 < of && is_before(squares[next], rows[next], next + 1)) {
                ++next;
            }
            if (!is_before(squared, row, next)) {
                break;
            }
            put(at, squares[next], rows[next]);
            at = next;
        }
        put(at, squared, row);
    }
    TH_STEP void sort() {
        for (std::uint64_t end = size; end-- > 1;) {
            double const squared = squares[end];
            std::int64_t const row = rows[end];
            put(end, squares[0], rows[0]);
            sink(squared, row, end);
        }
    }
};

/// Writes the neighbours of each query, nearest first.
struct WriteNeighbours {
    using Shared = NoShared;
    RadiusGrid grid;
    std::int64_t const* offsets;  // [queries + 1]
    std::int64_t* rows;
    double* distances;
    double scale;
    std::uint64_t queries;

    TH_STEP void operator()(NoShared&) const {
        for_rows(queries, [&](std::uint64_t query) {
            std::int64_t const begin = offsets[query];
            NeighbourHeap heap{rows + begin, distances + begin,
                               static_cast<std::uint64_t>(offsets[query + 1] - begin)};
            grid.for_each_near(query, [&](double squared, std::uint32_t row) {
                heap.insert(squared, std::int64_t{row});
            });
            heap.sort();
            for (std::uint64_t i = 0; i < heap.size; ++i) {
                heap.squares[i] = square_root(heap.squares[i]) / scale;
            }
        });
    }
};

}  // namespace tensorhash::device
