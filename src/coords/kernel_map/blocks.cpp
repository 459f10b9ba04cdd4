// The blocks path: the in rows are bits in blocks, so a few word operations find the pairs of 64
// offsets of a row. Queries run block by block, so that the blocks around them stay in cache. A
// first pass counts the pairs, a second writes them to their final places.
#include <algorithm>
#include <atomic>
#include <functional>
#include <optional>
#include <span>

#include "coords/kernel_map/bit_counts.hpp"
#include "coords/kernel_map/block_windows.hpp"
#include "coords/kernel_map/finish_groups.hpp"
#include "coords/kernel_map/plane_sweeps.hpp"
#include "runtime/parallel.hpp"
#include "runtime/scan.hpp"

namespace tensorhash::coords {
namespace {

constexpr std::size_t kTaskRows = 1024;
constexpr std::size_t kMaxSaved = 8;       // words per row that counting keeps for writing
constexpr std::uint64_t kWordsPerRow = 4;  // of the directory: a box with more is too sparse
constexpr std::uint64_t kMinWords = 4096;

/// All queries, cut into tasks that count, then write.
class BlockSweeps {
public:
    /// `writes`: write() follows count().
    BlockSweeps(WindowPlan const& plan, std::size_t groups, bool writes = true)
        : plan_(plan), chunks_(runtime::cut(plan.queries.size, kTaskRows)),
          places_(chunks_.count, groups) {
        if (writes && plan.tiles.size() <= kMaxSaved) {
            std::size_t const batches = plan.queries.size / kRowsAtOnce + 1;
            saved_ = runtime::Block(batches * plan.tiles.size() * sizeof(Words));
        }
    }

    /// Counts the pairs of each group, and prepares the places for write().
    std::vector<std::int64_t> count() {
        runtime::for_chunks(chunks_, [&](std::size_t chunk, std::size_t begin, std::size_t end) {
            count_chunk(begin, end, places_.of(chunk));
        });
        return places_.totals();
    }

    /// Writes the pairs of each group in the order of the queries, from begins[group] on.
    void write(KernelMapPairs& pairs, std::span<std::int64_t const> begins) {
        runtime::for_chunks(chunks_, [&](std::size_t chunk, std::size_t begin, std::size_t end) {
            write_chunk(begin, end, places_.places(chunk, begins), pairs);
        });
    }
    void write(KernelMapPairs& pairs) { write(pairs, pairs.offsets.as<std::int64_t>()); }
    std::span<std::uint32_t const> rows() const {
        return {plan_.queries.rows(), plan_.queries.size};
    }

private:
    using Words = std::uint64_t[kRowsAtOnce];

    /// Where the words of a tile are kept, or `own` if they are not kept.
    Words& kept(std::size_t row, std::size_t tile, Words& own) {
        if (saved_.data() == nullptr) return own;
        std::size_t const at = row / kRowsAtOnce * plan_.tiles.size() + tile;
        return reinterpret_cast<Words*>(saved_.data())[at];
    }

    void count_chunk(std::size_t begin, std::size_t end, std::int64_t* totals) {
        Windows windows(plan_);
        std::vector<BitCounts> counts(plan_.tiles.size());
        for (std::size_t row = begin; row < end; row += kRowsAtOnce) {
            windows.load(row, end);
            for (std::size_t t = 0; t < counts.size(); ++t) {
                Words own;
                Words& words = kept(row, t, own);
                for (std::size_t i = 0; i < kRowsAtOnce; ++i) {
                    words[i] = windows.word(plan_.tiles[t], i);
                }
                counts[t].add(words);
            }
        }
        for (std::size_t t = 0; t < counts.size(); ++t) {
            Tile const& tile = plan_.tiles[t];
            auto const& count = counts[t].finish();
            for (std::size_t bit = 0; bit < 64; ++bit) {
                if (tile.mask >> bit & 1) totals[tile.group + plan_.place(bit)] = count[bit];
            }
        }
    }

    void write_chunk(std::size_t begin, std::size_t end, std::int64_t* next,
                     KernelMapPairs& pairs) {
        Windows windows(plan_);
        PairWriter<WindowPairs> writer(pairs, WindowPairs(plan_));
        for (std::size_t row = begin; row < end; row += kRowsAtOnce) {
            windows.load(row, end);
            for (std::size_t t = 0; t < plan_.tiles.size(); ++t) {
                Tile const& tile = plan_.tiles[t];
                Words own;
                Words& words = kept(row, t, own);
                if (&words == &own) {
                    for (std::size_t i = 0; i < kRowsAtOnce; ++i) words[i] = windows.word(tile, i);
                }
                std::array<std::uint8_t, kRowsAtOnce> meeting;
                std::size_t const count = list_filled(words, meeting);
                for (std::size_t m = 0; m < count; ++m) {
                    std::size_t const i = meeting[m];
                    writer.add(windows.match(tile, i, words[i], next + tile.group));
                }
            }
            writer.flush();
        }
    }

    WindowPlan const& plan_;
    runtime::Chunks chunks_;
    GroupPlaces places_;
    runtime::Block saved_{};  // [16 rows, tile] words, if they are few
};

/// Whether the queries are the in rows and their kernels reach no further than the next blocks.
bool queries_own_rows(KernelMapRequest const& request) {
    auto const side = static_cast<std::int64_t>(kBlockSide);
    bool near = request.equal && request.unstrided;
    for (std::size_t axis = 0; axis < request.axes; ++axis) {
        near = near && request.offset(0)[axis] >= -side &&
               request.offset(request.all - 1)[axis] <= side;
    }
    return near;
}

/// Where the kernels of out rows begin, as keys of a frame.
class CornerKeys {
public:
    static constexpr std::uint64_t kNone = ~std::uint64_t{0};

    CornerKeys(KernelMapRequest const& request, BlockFrame const& frame)
        : rows_(request.out), frame_(frame), first_(3 - request.axes) {
        for (std::size_t axis = 0; axis < request.axes; ++axis) {
            stride_[first_ + axis] = request.stride[axis];
            offset_[first_ + axis] = request.offset(0)[axis];
            size_[first_ + axis] = request.size[axis];
        }
    }
    /// The key of row i, or kNone if its kernel misses the bounding box of the in rows.
    std::uint64_t operator()(std::size_t i) const noexcept {
        std::int32_t const* const row = row_of(rows_, i);
        bool near = row[0] >= frame_.batch.least && row[0] <= frame_.batch.most;
        std::array<std::int64_t, 3> at{};
        for (std::size_t a = first_; a < 3; ++a) {
            at[a] = row[a - first_ + 1] * stride_[a] + offset_[a];
            near &= at[a] + size_[a] > frame_.axis[a].least && at[a] <= frame_.axis[a].most;
        }
        return near ? frame_.key(row[0], at) : kNone;
    }

private:
    CoordRows const& rows_;
    BlockFrame const& frame_;
    std::size_t first_;  // the first axis that the coordinates have
    std::array<std::int64_t, 3> stride_{}, offset_{}, size_{};
};

/// The first of the out rows has the number `first`.
RowsByBlock out_rows_by_block(KernelMapRequest const& request, BlockFrame const& frame,
                              std::size_t first = 0) {
    RowsByBlock list(request.out.rows);
    CornerKeys const keys(request, frame);
    std::atomic<bool> misses{false};
    runtime::for_ranges(list.size, runtime::kGrain, [&](std::size_t begin, std::size_t end) {
        bool any = false;
        for (std::size_t i = begin; i < end; ++i) {
            std::uint64_t const key = keys(i);
            list.keys()[i] = key;
            list.rows()[i] = static_cast<std::uint32_t>(first + i);
            any |= key == CornerKeys::kNone;
        }
        if (any) misses.store(true, std::memory_order_relaxed);
    });
    if (misses.load(std::memory_order_relaxed)) {
        std::size_t kept = 0;
        for (std::size_t i = 0; i < list.size; ++i) {
            list.keys()[kept] = list.keys()[i];
            list.rows()[kept] = list.rows()[i];
            kept += list.keys()[i] != CornerKeys::kNone;
        }
        list.size = kept;
    }
    list.sort(frame);
    return list;
}

/// Reports the smallest row that repeats another, as every path does.
[[noreturn]] void fail_repeated_in_blocks(RowsByBlock const& in, VoxelBlocks const& blocks) {
    std::uint32_t row = ~std::uint32_t{0};
    std::uint32_t first = 0;
    for (std::size_t i = 0; i < in.size; ++i) {
        std::uint64_t const key = in.keys()[i];
        std::uint32_t block = 0;
        blocks.directory().find(key >> kCellBits, 1, &block);
        std::uint32_t const own = blocks.row(block, key >> 6 & 7, key & 63);
        if (own != in.rows()[i] && in.rows()[i] < row) {
            row = in.rows()[i];
            first = own;
        }
    }
    backend::fail_repeated(row, first);
}

/// A margin of one block is enough for kernels up to 9 wide.
std::optional<BlockFrame> frame_for(KernelMapRequest const& request) {
    bool const wide = std::any_of(request.size.begin(), request.size.end(),
                                  [](std::int64_t size) { return size > 9; });
    auto frame = BlockFrame::of(request.in, wide ? 2 : 1);
    std::uint64_t const most = kWordsPerRow * request.in.rows + kMinWords;
    if (frame && BlockDirectory::words(frame->blocks) > most) frame.reset();
    return frame;
}

/// Counts the pairs, allocates them, writes them, and sorts the groups by row.
template <class Sweeps>
KernelMapPairs sweep_pairs(Sweeps&& sweeps, KernelMapRequest const& request, Swept const& swept) {
    KernelMapPairs pairs = allocate_pairs(request, swept, sweeps.count());
    sweeps.write(pairs);
    auto const rows = sweeps.rows();
    finish_groups(pairs, request.out.rows, swept, std::is_sorted(rows.begin(), rows.end()));
    return pairs;
}

/// Many out rows, slab by slab: counts every slab, then comes back to write it. So no more memory
/// than that of a slab is needed beside the pairs.
class SlabSweeps {
public:
    SlabSweeps(KernelMapRequest const& request, BlockFrame const& frame, VoxelBlocks const& blocks)
        : request_(request), frame_(frame), blocks_(blocks) {
        std::size_t const slabs = (request.out.rows + kSlabRows - 1) / kSlabRows;
        rows_ = (request.out.rows + slabs - 1) / slabs;
    }

    std::vector<std::int64_t> count() {
        std::vector<std::int64_t> all(request_.groups);
        for (std::size_t first = 0; first < request_.out.rows; first += rows_) {
            sweep(first, false, [&](BlockSweeps& sweeps, std::size_t) {
                counts_.push_back(sweeps.count());
                std::transform(all.begin(), all.end(), counts_.back().begin(), all.begin(),
                               std::plus<>());
            });
        }
        return all;
    }

    /// Writes the pairs of each group, sorted by row.
    void write(KernelMapPairs& pairs) {
        auto const offsets = pairs.offsets.as<std::int64_t>();
        std::vector<std::int64_t> begins(offsets.begin(), offsets.end());
        auto expected = counts_.begin();
        for (std::size_t first = 0; first < request_.out.rows; first += rows_, ++expected) {
            sweep(first, true, [&](BlockSweeps& sweeps, std::size_t rows) {
                if (sweeps.count() != *expected) backend::fail_changed(request_.out_name);
                sweeps.write(pairs, begins);
                auto const order = sweeps.rows();
                if (!std::is_sorted(order.begin(), order.end())) {
                    sort_slab(pairs, {begins, *expected, first, rows});
                }
            });
            std::transform(expected->begin(), expected->end(), begins.begin(), begins.begin(),
                           std::plus<>());
        }
    }

private:
    template <class Body>
    void sweep(std::size_t first, bool writes, Body const& body) {
        KernelMapRequest slab = request_;
        slab.out = copy_slab(request_.out, first, std::min(rows_, request_.out.rows - first),
                             request_.out_name);
        RowsByBlock const rows = out_rows_by_block(slab, frame_, first);
        WindowPlan const plan(slab, frame_, blocks_, rows, false, request_.groups);
        BlockSweeps sweeps(plan, request_.groups, writes);
        body(sweeps, slab.out.rows);
    }

    KernelMapRequest const& request_;
    BlockFrame const& frame_;
    VoxelBlocks const& blocks_;
    std::size_t rows_;                                 // of a slab
    std::vector<std::vector<std::int64_t>> counts_{};  // [slab, group]
};

KernelMapPairs find_in_blocks(KernelMapRequest const& request, BlockFrame const& frame) {
    std::optional<RowsByBlock> in = in_rows_by_block(request.in, frame);
    VoxelBlocks const blocks(*in, frame);
    if (blocks.repeated() && request.duplicates == Duplicates::Refuse) {
        fail_repeated_in_blocks(*in, blocks);
    }
    Swept const swept(request, blocks.repeated());
    if (PlaneSweeps::take(request, swept, blocks.repeated())) {
        in.reset();
        return sweep_pairs(PlaneSweeps(request, frame, blocks), request, swept);
    }
    if (request.out_by_slabs) {
        in.reset();
        SlabSweeps sweeps(request, frame, blocks);
        KernelMapPairs pairs = allocate_pairs(request, swept, sweeps.count());
        sweeps.write(pairs);
        pairs.repeated = blocks.repeated();
        return pairs;
    }
    bool const own = queries_own_rows(request);
    if (!own) in = out_rows_by_block(request, frame);
    WindowPlan const plan(request, frame, blocks, *in, own, swept.groups);
    KernelMapPairs pairs = sweep_pairs(BlockSweeps(plan, swept.groups), request, swept);
    pairs.repeated = blocks.repeated();
    return pairs;
}

}  // namespace

std::optional<KernelMapPairs> blocks_kernel_map(KernelMapRequest const& request) {
    auto const frame = frame_for(request);
    return frame ? std::optional(find_in_blocks(request, *frame)) : std::nullopt;
}

}  // namespace tensorhash::coords
