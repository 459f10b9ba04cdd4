// Stores the in rows as bits in blocks of 8 x 8 x 8 cells: a few words show a cell's neighbours.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "coords/rows/rows.hpp"
#include "runtime/memory.hpp"

namespace tensorhash::coords {

inline constexpr int kBlockBits = 3;
inline constexpr std::uint64_t kBlockSide = std::uint64_t{1} << kBlockBits;
inline constexpr int kCellBits = 3 * kBlockBits;

/// Maps coordinates to cells and cells to blocks, numbered from a corner below all in rows.
struct BlockFrame {
    struct Axis {
        std::size_t column = 0;    // of the coordinates; 0 if they lack this axis
        std::int64_t least = 0;    // of in_coords
        std::int64_t most = 0;     // of in_coords
        std::int64_t base = 0;     // the coordinate that is cell 0
        std::uint64_t weight = 1;  // of a step to the next block, in block numbers
    };
    std::array<Axis, 3> axis{};  // coordinates with two axes use the last two
    Axis batch{};
    std::uint64_t blocks = 1;  // in the whole box

    /// With `margin` empty blocks on every side. Needs a row. nullopt if a key exceeds 63 bits.
    static std::optional<BlockFrame> of(CoordRows const& in, std::int64_t margin);

    /// The block number, followed by kCellBits for the cell inside the block.
    std::uint64_t key(std::int64_t batch_number, std::array<std::int64_t, 3> at) const noexcept {
        auto number = static_cast<std::uint64_t>(batch_number - batch.base) * batch.weight;
        std::uint64_t inside = 0;
        for (std::size_t a = 0; a < 3; ++a) {
            auto const cell = static_cast<std::uint64_t>(at[a] - axis[a].base);
            number += (cell >> kBlockBits) * axis[a].weight;
            inside = inside << kBlockBits | (cell & (kBlockSide - 1));
        }
        return number << kCellBits | inside;
    }
};

/// Rows sorted by block; the rows of one block keep their order. The keys are those of BlockFrame.
struct RowsByBlock {
    std::size_t size = 0;
    runtime::Block key_block{};
    runtime::Block row_block{};

    explicit RowsByBlock(std::size_t count)
        : size(count), key_block(count * sizeof(std::uint64_t)),
          row_block(count * sizeof(std::uint32_t)) {}
    std::uint64_t* keys() noexcept { return reinterpret_cast<std::uint64_t*>(key_block.data()); }
    std::uint64_t const* keys() const noexcept {
        return reinterpret_cast<std::uint64_t const*>(key_block.data());
    }
    std::uint32_t* rows() noexcept { return reinterpret_cast<std::uint32_t*>(row_block.data()); }
    std::uint32_t const* rows() const noexcept {
        return reinterpret_cast<std::uint32_t const*>(row_block.data());
    }
    void sort(BlockFrame const& frame);
};
RowsByBlock in_rows_by_block(CoordRows const& in, BlockFrame const& frame);

/// Which blocks of the box exist: one bit per block, and for every 64 bits the first block that
/// they mark.
class BlockDirectory {
public:
    static std::uint64_t words(std::uint64_t box) noexcept { return (box + 63) / 64; }

    BlockDirectory() = default;
    explicit BlockDirectory(std::uint64_t box)
        : words_(words(box) * sizeof(Word), runtime::Fill::Zero) {}

    /// Call this in ascending order of numbers.
    void add(std::uint64_t number, std::uint32_t block) noexcept {
        Word& word = reinterpret_cast<Word*>(words_.data())[number / 64];
        if (word.bits == 0) word.first = block;
        word.bits |= std::uint64_t{1} << number % 64;
    }
    /// out[i] = the block of number + i, or 0, the empty block, if there is none.
    void find(std::uint64_t number, std::size_t count, std::uint32_t* out) const noexcept {
        Word const* const words = reinterpret_cast<Word const*>(words_.data());
        std::uint64_t bits = 0;
        std::uint32_t next = 0;
        for (std::size_t i = 0; i < count; ++i, ++number) {
            if (i == 0 || number % 64 == 0) {
                Word const& word = words[number / 64];
                std::uint64_t const before = word.bits & ((std::uint64_t{1} << number % 64) - 1);
                next = word.first + static_cast<std::uint32_t>(std::popcount(before));
                bits = word.bits >> number % 64;
            }
            auto const there = static_cast<std::uint32_t>(bits & 1);
            out[i] = next & (0 - there);  // no branch: it would be unpredictable
            next += there;
            bits >>= 1;
        }
    }

private:
    struct Word {
        std::uint64_t bits;
        std::uint32_t first;
    };
    runtime::Block words_{};
};

/// The blocks that have rows, and the row of each cell: the first of equal rows.
class VoxelBlocks {
public:
    VoxelBlocks(RowsByBlock const& in, BlockFrame const& frame);

    bool repeated() const noexcept { return repeated_; }
    /// Includes the empty block, which is block 0.
    std::size_t count() const noexcept { return numbers_.size(); }
    std::uint64_t number(std::size_t block) const noexcept { return numbers_[block]; }
    /// Sorted by block, then by cell in the order of its bits.
    std::span<std::uint32_t const> rows() const noexcept {
        return {reinterpret_cast<std::uint32_t const*>(rows_.data()), count_};
    }
    /// Where the rows of a plane begin.
    std::uint32_t first(std::uint32_t block, std::size_t x) const noexcept {
        return reinterpret_cast<std::uint32_t const*>(firsts_.data())[block * kBlockSide + x];
    }
    BlockDirectory const& directory() const noexcept { return directory_; }
    /// Bit 8 * y + z of plane x is set if the cell has a row.
    std::uint64_t plane(std::uint32_t block, std::size_t x) const noexcept {
        return reinterpret_cast<std::uint64_t const*>(planes_.data())[block * kBlockSide + x];
    }
    /// The row of a cell that has one.
    std::uint32_t row(std::uint32_t block, std::size_t x, std::size_t bit) const noexcept {
        std::uint64_t const before = plane(block, x) & ((std::uint64_t{1} << bit) - 1);
        return rows()[first(block, x) + static_cast<std::uint32_t>(std::popcount(before))];
    }

private:
    /// Memory for `blocks` blocks, the empty block included.
    void allocate(std::size_t blocks);
    /// Builds the blocks that begin in rows [begin, end), the first of them as `block`. Returns
    /// whether all their rows are distinct.
    bool build_blocks(RowsByBlock const& in, std::size_t begin, std::size_t end,
                      std::uint32_t block);
    /// Builds one block from the rows at `begin`. Returns where the next block begins.
    std::size_t build(RowsByBlock const& in, std::size_t begin, std::uint32_t block);

    std::size_t count_;        // of rows
    runtime::Block rows_;      // by block, then by cell
    runtime::Block planes_{};  // [block, x], the empty block first
    runtime::Block firsts_{};  // [block, x]: where the plane's rows begin
    std::vector<std::uint64_t> numbers_{};
    BlockDirectory directory_{};
    bool repeated_ = false;
};

}  // namespace tensorhash::coords
