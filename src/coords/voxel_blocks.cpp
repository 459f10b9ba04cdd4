#include "coords/voxel_blocks.hpp"

#include <algorithm>
#include <atomic>

#include "coords/grid_keys.hpp"
#include "coords/sort.hpp"
#include "runtime/parallel.hpp"

namespace tensorhash::coords {
namespace {

constexpr std::uint64_t kMostBlocks = std::uint64_t{1} << (63 - kCellBits);

constexpr std::int64_t kMargin = 2 * kBlockSide;  // in cells

}  // namespace

std::optional<BlockFrame> BlockFrame::of(CoordRows const& in) {
    BlockFrame frame;
    Bounds const bounds = bounds_of(in);
    bool fits = true;
    auto const lay = [&](Axis& axis, std::size_t column, std::int64_t margin, int bits) {
        axis.column = column;
        axis.least = bounds.low[column];
        axis.most = bounds.high[column];
        axis.base = axis.least - margin;
        axis.weight = frame.blocks;
        auto const last = static_cast<std::uint64_t>(axis.most - axis.base + margin);
        std::uint64_t const count = (last >> bits) + 1;
        fits = fits && count <= kMostBlocks / frame.blocks;
        frame.blocks *= fits ? count : 1;
    };
    for (std::size_t column = in.columns; column-- > 1;) {
        lay(frame.axis[column + 3 - in.columns], column, kMargin, kBlockBits);
    }
    lay(frame.batch, 0, 0, 0);
    return fits ? std::optional(frame) : std::nullopt;
}

RowsByBlock in_rows_by_block(CoordRows const& in, BlockFrame const& frame) {
    RowsByBlock list(in.rows);
    std::uint64_t* const keys = list.keys();
    runtime::for_ranges(list.size, runtime::kGrain, [&](std::size_t begin, std::size_t end) {
        auto const& [x, y, z] = frame.axis;
        for (std::size_t i = begin; i < end; ++i) {
            std::int32_t const* const row = row_of(in, i);
            keys[i] = frame.key(row[0], {x.column == 0 ? 0 : row[x.column], row[y.column], row[z.column]});
            list.rows()[i] = static_cast<std::uint32_t>(i);
        }
    });
    sort_rows(keys, list.rows(), list.size, (frame.blocks << kCellBits) - 1, kCellBits);
    return list;
}

VoxelBlocks::VoxelBlocks(RowsByBlock const& in, BlockFrame const& frame)
    : rows_(in.size * sizeof(std::uint32_t)) {
    std::size_t const count = in.size;
    std::uint64_t const* const keys = in.keys();
    std::uint32_t const* const rows = in.rows();
    auto const number_at = [&](std::size_t i) { return keys[i] >> kCellBits; };
    auto const is_first = [&](std::size_t i) { return i == 0 || number_at(i) != number_at(i - 1); };
    runtime::Chunks const chunks = runtime::cut(count, runtime::kGrain);
    std::vector<std::uint32_t> first(chunks.count + 1, 1);
    runtime::for_chunks(chunks, [&](std::size_t chunk, std::size_t begin, std::size_t end) {
        std::uint32_t found = 0;
        for (std::size_t i = begin; i < end; ++i) found += is_first(i);
        first[chunk + 1] = found;
    });
    for (std::size_t chunk = 0; chunk < chunks.count; ++chunk) first[chunk + 1] += first[chunk];
    std::size_t const blocks = first.back();
    cells_ = runtime::Block(blocks * sizeof(BlockCells));
    before_ = runtime::Block(blocks * sizeof(BlockRows));
    auto* const all_cells = reinterpret_cast<BlockCells*>(cells_.data());
    auto* const all_before = reinterpret_cast<BlockRows*>(before_.data());
    all_cells[0] = {};
    all_before[0] = {};
    auto* const ordered = reinterpret_cast<std::uint32_t*>(rows_.data());
    std::vector<std::uint64_t> numbers(blocks);
    std::atomic<bool> repeated{false};
    runtime::for_chunks(chunks, [&](std::size_t chunk, std::size_t begin, std::size_t end) {
        std::uint32_t next = first[chunk];
        while (begin < end && !is_first(begin)) ++begin;
        for (std::size_t at = begin; at < end;) {
            BlockCells plane{};
            BlockRows first_row{};
            std::uint64_t const number = number_at(at);
            std::size_t stop = at;
            for (; stop < count && number_at(stop) == number; ++stop) {
                std::uint64_t const cell = keys[stop];
                plane[cell >> 6 & 7] |= std::uint64_t{1} << (cell & 63);
            }
            auto before = static_cast<std::uint32_t>(at);
            for (std::size_t x = 0; x < kBlockSide; ++x) {
                first_row[x] = before;
                before += static_cast<std::uint32_t>(std::popcount(plane[x]));
            }
            if (before != stop) repeated.store(true, std::memory_order_relaxed);
            for (; at < stop; ++at) {
                std::uint64_t const cell = keys[at];
                std::size_t const x = cell >> 6 & 7;
                std::uint64_t const below = (std::uint64_t{1} << (cell & 63)) - 1;
                ordered[first_row[x] + static_cast<std::uint32_t>(
                                              std::popcount(plane[x] & below))] = rows[at];
            }
            numbers[next] = number;
            all_cells[next] = plane;
            all_before[next++] = first_row;
        }
    });
    repeated_ = repeated.load(std::memory_order_relaxed);
    directory_.emplace(frame.blocks);
    for (std::size_t block = 1; block < blocks; ++block) {
        directory_->add(numbers[block], static_cast<std::uint32_t>(block));
    }
}

}  // namespace tensorhash::coords
