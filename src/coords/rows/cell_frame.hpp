// Cells of coordinates in blocks of 64, one bit each, for expansion.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace tensorhash::coords {

/// Numbers the blocks of a box that holds all rows and all their sums with offsets. A block has
/// 4 x 4 x 4, 8 x 8 or 64 cells.
struct CellFrame {
    static constexpr std::size_t kMaxAxes = 3;
    static constexpr unsigned kCellBits = 6;

    std::size_t axes = 0;
    unsigned side_bits = 0;  // of a block's side
    std::int64_t first_batch = 0;
    std::uint64_t batch_weight = 0;
    std::array<std::int64_t, kMaxAxes> base{};     // the coordinate of cell 0
    std::array<std::uint64_t, kMaxAxes> weight{};  // of a step to the next block

    /// `values` are rows [N, 1 + D], N > 0. No sum leaves Int. nullopt if D is above 3 or the box
    /// has too many blocks.
    template <class Int>
    static std::optional<CellFrame> of(std::span<Int const> values, std::size_t columns,
                                       std::span<std::int64_t const> offsets);

    template <class Int>
    std::uint64_t block(Int const* row) const noexcept {
        std::uint64_t number =
            (static_cast<std::uint64_t>(row[0]) - static_cast<std::uint64_t>(first_batch)) *
            batch_weight;
        for (std::size_t axis = 0; axis < axes; ++axis) {
            number += (cell_on(axis, row[axis + 1]) >> side_bits) * weight[axis];
        }
        return number;
    }
    /// The cell inside the block.
    template <class Int>
    std::uint32_t cell(Int const* row) const noexcept {
        std::uint64_t cell = 0;
        for (std::size_t axis = 0; axis < axes; ++axis) {
            cell = cell << side_bits |
                   (cell_on(axis, row[axis + 1]) & ((std::uint64_t{1} << side_bits) - 1));
        }
        return static_cast<std::uint32_t>(cell);
    }

private:
    std::uint64_t cell_on(std::size_t axis, std::int64_t value) const noexcept {
        return static_cast<std::uint64_t>(value) - static_cast<std::uint64_t>(base[axis]);
    }
};

/// What each offset does to each cell of a block.
struct CellSteps {
    struct Step {
        std::uint16_t delta;  // the block that it reaches, in `deltas`
        std::uint8_t cell;    // and the cell there
    };
    static constexpr std::size_t kCells = std::size_t{1} << CellFrame::kCellBits;

    std::vector<std::uint64_t> deltas;  // between block numbers, distinct
    std::vector<Step> steps;            // [offset, cell]
    std::vector<std::uint64_t> hits;    // [cell, delta]: the cells that all offsets reach
    std::vector<std::uint64_t> reach;   // [delta]: the cells from which some offset reaches it

    /// nullopt if there are too many offsets, or if they are scattered so widely that a list of
    /// blocks would not save memory.
    static std::optional<CellSteps> of(CellFrame const& frame,
                                       std::span<std::int64_t const> offsets);

    Step step(std::size_t offset, std::size_t cell) const noexcept {
        return steps[offset * kCells + cell];
    }
};

template <class Int>
std::optional<CellFrame> CellFrame::of(std::span<Int const> values, std::size_t columns,
                                       std::span<std::int64_t const> offsets) {
    constexpr std::uint64_t kMostBlocks = std::uint64_t{1} << 62;
    CellFrame frame;
    frame.axes = columns - 1;
    if (frame.axes > kMaxAxes) return {};
    frame.side_bits = kCellBits / static_cast<unsigned>(frame.axes);
    std::array<Int, kMaxAxes + 1> low{}, high{};
    std::copy_n(values.begin(), columns, low.begin());
    high = low;
    for (std::size_t row = 0; row < values.size(); row += columns) {
        for (std::size_t column = 0; column < columns; ++column) {
            low[column] = std::min(low[column], values[row + column]);
            high[column] = std::max(high[column], values[row + column]);
        }
    }
    std::uint64_t blocks = 1;
    for (std::size_t axis = frame.axes; axis-- > 0;) {
        std::int64_t least = 0, most = 0;
        for (std::size_t i = axis; i < offsets.size(); i += frame.axes) {
            least = std::min(least, offsets[i]);
            most = std::max(most, offsets[i]);
        }
        frame.base[axis] = low[axis + 1] + least;
        frame.weight[axis] = blocks;
        std::uint64_t const last = static_cast<std::uint64_t>(high[axis + 1] + most) -
                                   static_cast<std::uint64_t>(frame.base[axis]);
        std::uint64_t const count = (last >> frame.side_bits) + 1;
        if (count > kMostBlocks / blocks) return {};
        blocks *= count;
    }
    frame.first_batch = low[0];
    frame.batch_weight = blocks;
    std::uint64_t const batches =
        static_cast<std::uint64_t>(high[0]) - static_cast<std::uint64_t>(low[0]);
    if (batches >= kMostBlocks / blocks) return {};
    return frame;
}

}  // namespace tensorhash::coords
