// Builds the blocks: sorts rows by block, then builds each block on its own.
#include "coords/kernel_map/voxel_blocks.hpp"

#include <algorithm>
#include <atomic>
#include <vector>

#include "coords/kernel_map/grid_keys.hpp"
#include "coords/rows/sort.hpp"
#include "runtime/parallel.hpp"
#include "runtime/scan.hpp"

namespace tensorhash::coords {
namespace {

constexpr std::uint64_t kMostBlocks = std::uint64_t{1} << (63 - kCellBits);

std::uint64_t number_of(std::uint64_t key) { return key >> kCellBits; }

bool begins_block(RowsByBlock const& list, std::size_t i) {
    return i == 0 || number_of(list.keys()[i]) != number_of(list.keys()[i - 1]);
}

}  // namespace

std::optional<BlockFrame> BlockFrame::of(CoordRows const& in, std::int64_t margin) {
    Bounds const bounds = bounds_of(in);
    BlockFrame frame;
    bool fits = true;
    auto const lay_out = [&](Axis& one, std::size_t column, std::int64_t cells, int bits) {
        one.column = column;
        one.least = bounds.low[column];
        one.most = bounds.high[column];
        one.base = one.least - cells;
        one.weight = frame.blocks;
        auto const last = static_cast<std::uint64_t>(one.most + cells - one.base);
        std::uint64_t const count = (last >> bits) + 1;
        fits = fits && count <= kMostBlocks / frame.blocks;
        frame.blocks *= fits ? count : 1;
    };
    for (std::size_t column = in.columns; column-- > 1;) {
        lay_out(frame.axis[column + 3 - in.columns], column,
                margin * static_cast<std::int64_t>(kBlockSide), kBlockBits);
    }
    lay_out(frame.batch, 0, 0, 0);
    return fits ? std::optional(frame) : std::nullopt;
}

void RowsByBlock::sort(BlockFrame const& frame) {
    sort_rows(keys(), rows(), size, (frame.blocks << kCellBits) - 1, kCellBits);
}

RowsByBlock in_rows_by_block(CoordRows const& in, BlockFrame const& frame) {
    RowsByBlock list(in.rows);
    runtime::for_ranges(list.size, runtime::kGrain, [&](std::size_t begin, std::size_t end) {
        auto const& [x, y, z] = frame.axis;
        for (std::size_t i = begin; i < end; ++i) {
            std::int32_t const* const row = in.data() + i * in.columns;
            list.keys()[i] = frame.key(
                row[0], {x.column == 0 ? 0 : row[x.column], row[y.column], row[z.column]});
            list.rows()[i] = static_cast<std::uint32_t>(i);
        }
    });
    list.sort(frame);
    return list;
}

VoxelBlocks::VoxelBlocks(RowsByBlock const& in, BlockFrame const& frame)
    : count_(in.size), rows_(in.size * sizeof(std::uint32_t)) {
    std::atomic<bool> repeated{false};
    runtime::select(
        runtime::cut(in.size, runtime::kGrain),
        [&](std::size_t begin, std::size_t end) {
            std::size_t begun = 0;
            for (std::size_t i = begin; i < end; ++i) begun += begins_block(in, i);
            return begun;
        },
        [&](std::size_t blocks) { allocate(blocks + 1); },  // and the empty block
        [&](std::size_t begin, std::size_t end, std::size_t before) {
            if (!build_blocks(in, begin, end, static_cast<std::uint32_t>(before + 1))) {
                repeated.store(true, std::memory_order_relaxed);
            }
        });
    repeated_ = repeated.load(std::memory_order_relaxed);
    directory_ = BlockDirectory(frame.blocks);
    for (std::size_t block = 1; block < count(); ++block) {
        directory_.add(numbers_[block], static_cast<std::uint32_t>(block));
    }
}

void VoxelBlocks::allocate(std::size_t blocks) {
    planes_ = runtime::Block(blocks * kBlockSide * sizeof(std::uint64_t));
    firsts_ = runtime::Block(blocks * kBlockSide * sizeof(std::uint32_t));
    std::fill_n(reinterpret_cast<std::uint64_t*>(planes_.data()), kBlockSide, 0);
    std::fill_n(reinterpret_cast<std::uint32_t*>(firsts_.data()), kBlockSide, 0);
    numbers_.resize(blocks);
}

bool VoxelBlocks::build_blocks(RowsByBlock const& in, std::size_t begin, std::size_t end,
                               std::uint32_t block) {
    bool distinct = true;
    while (begin < end && !begins_block(in, begin)) ++begin;
    for (; begin < end; ++block) {
        numbers_[block] = number_of(in.keys()[begin]);
        std::size_t const next = build(in, begin, block);
        std::uint32_t cells = 0;
        for (std::size_t x = 0; x < kBlockSide; ++x) {
            cells += static_cast<std::uint32_t>(std::popcount(plane(block, x)));
        }
        distinct = distinct && cells == next - begin;
        begin = next;
    }
    return distinct;
}

std::size_t VoxelBlocks::build(RowsByBlock const& in, std::size_t begin, std::uint32_t block) {
    std::uint64_t const* const keys = in.keys();
    std::array<std::uint64_t, kBlockSide> planes{};
    std::size_t end = begin;
    for (; end < in.size && number_of(keys[end]) == number_of(keys[begin]); ++end) {
        planes[keys[end] >> 6 & 7] |= std::uint64_t{1} << (keys[end] & 63);
    }
    std::copy_n(planes.begin(), kBlockSide,
                reinterpret_cast<std::uint64_t*>(planes_.data()) + block * kBlockSide);
    auto* const firsts = reinterpret_cast<std::uint32_t*>(firsts_.data()) + block * kBlockSide;
    auto next = static_cast<std::uint32_t>(begin);
    for (std::size_t x = 0; x < kBlockSide; ++x) {
        firsts[x] = next;
        next += static_cast<std::uint32_t>(std::popcount(planes[x]));
    }
    // From the last row to the first, so that the first of equal rows stays.
    for (std::size_t i = end; i-- > begin;) {
        std::size_t const x = keys[i] >> 6 & 7;
        std::uint64_t const before = planes[x] & ((std::uint64_t{1} << (keys[i] & 63)) - 1);
        reinterpret_cast<std::uint32_t*>(
            rows_.data())[firsts[x] + static_cast<std::uint32_t>(std::popcount(before))] =
            in.rows()[i];
    }
    return end;
}

}  // namespace tensorhash::coords
