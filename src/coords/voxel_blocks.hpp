// In rows as blocks of 8 x 8 x 8 cells with a bit for each: what lies around a cell is a few words, whatever the kernel.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "coords/question.hpp"
#include "runtime/memory.hpp"

namespace tensorhash::coords {

inline constexpr int kBlockBits = 3;
inline constexpr std::uint64_t kBlockSide = std::uint64_t{1} << kBlockBits;
inline constexpr int kCellBits = 3 * kBlockBits;

/// Plane x has bit 8 * y + z of each cell that is there.
using BlockCells = std::array<std::uint64_t, kBlockSide>;
/// Where the rows of each plane begin.
using BlockRows = std::array<std::uint32_t, kBlockSide>;

/// How coordinates become cells and cells blocks. There is a margin of two empty blocks on every side, so that a kernel
/// which meets an in row lies wholly inside.
struct BlockFrame {
    struct Axis {
        std::size_t column = 0;    // of the coordinates; 0 if there is no such axis
        std::int64_t base = 0;     // the coordinate that is cell 0
        std::uint64_t weight = 1;  // of a step to the next block, in block numbers
        std::int64_t least = 0;    // of in_coords
        std::int64_t most = 0;
    };
    std::array<Axis, 3> axis{};
    Axis batch{};
    std::uint64_t blocks = 1;  // in the whole box

    /// Nothing if the numbers of such a box do not fit. Needs at least one in row.
    static std::optional<BlockFrame> of(CoordRows const& in);
    /// The number of the block, and the cell in it in the last kCellBits.
    std::uint64_t key(std::int64_t b, std::array<std::int64_t, 3> const& at) const noexcept {
        auto number = static_cast<std::uint64_t>(b - batch.base) * batch.weight;
        std::uint64_t inside = 0;
        for (std::size_t a = 0; a < 3; ++a) {
            auto const cell = static_cast<std::uint64_t>(at[a] - axis[a].base);
            number += (cell >> kBlockBits) * axis[a].weight;
            inside = inside << kBlockBits | (cell & (kBlockSide - 1));
        }
        return number << kCellBits | inside;
    }
};

/// Rows by block: those of a block one after the other. The keys are BlockFrame::key's.
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
};
RowsByBlock in_rows_by_block(CoordRows const& in, BlockFrame const& frame);

/// Which blocks there are: a bit for each of the box, and the number of blocks before each 64 of them.
class BlockDirectory {
public:
    explicit BlockDirectory(std::uint64_t box)
        : words_(((box + 63) / 64) * sizeof(Word), runtime::Fill::Zero) {}
    /// Blocks come in the order of their numbers.
    void add(std::uint64_t number, std::uint32_t block) {
        Word& word = reinterpret_cast<Word*>(words_.data())[number / 64];
        if (word.bits == 0) word.first = block;
        word.bits |= std::uint64_t{1} << number % 64;
    }
    /// 0, the empty block, if there is none.
    std::uint32_t find(std::uint64_t number) const noexcept {
        Word const& word = reinterpret_cast<Word const*>(words_.data())[number / 64];
        std::uint64_t const up_to = word.bits << (63 - number % 64);
        auto const place = word.first + static_cast<std::uint32_t>(std::popcount(up_to)) - 1;
        return up_to >> 63 != 0 ? place : 0;
    }

private:
    struct Word {
        std::uint64_t bits;
        std::uint32_t first;
    };
    runtime::Block words_;
};

class VoxelBlocks {
public:
    VoxelBlocks(RowsByBlock const& in, BlockFrame const& frame);

    bool repeated() const noexcept { return repeated_; }
    std::uint32_t find(std::uint64_t number) const noexcept { return directory_->find(number); }
    BlockCells const& cells(std::uint32_t block) const noexcept {
        return reinterpret_cast<BlockCells const*>(cells_.data())[block];
    }
    BlockRows const& before(std::uint32_t block) const noexcept {
        return reinterpret_cast<BlockRows const*>(before_.data())[block];
    }
    /// The row of a cell that is there.
    std::uint32_t const* rows() const noexcept {
        return reinterpret_cast<std::uint32_t const*>(rows_.data());
    }

private:
    runtime::Block rows_;    // by block, then by cell
    runtime::Block cells_;   // the empty block first
    runtime::Block before_;
    std::optional<BlockDirectory> directory_;
    bool repeated_ = false;
};

}  // namespace tensorhash::coords
