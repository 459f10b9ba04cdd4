// The blocks path: the in rows are bits in blocks, so a few word operations find the pairs of 64
// offsets of a row. Queries run block by block, so that the blocks around them stay in cache. A
// first pass counts the pairs, a second writes them to their final places.
#include <algorithm>
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
    BlockSweeps(WindowPlan const& plan, std::size_t groups)
        : plan_(plan), chunks_(runtime::cut(plan.queries.size, kTaskRows)),
          places_(chunks_.count, groups) {
        if (plan.tiles.size() <= kMaxSaved) {
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

    /// Writes the pairs of each group in the order of the queries.
    void write(KernelMapPairs& pairs) {
        auto const offsets = pairs.offsets.as<std::int64_t>();
        runtime::for_chunks(chunks_, [&](std::size_t chunk, std::size_t begin, std::size_t end) {
            write_chunk(begin, end, places_.places(chunk, offsets), pairs);
        });
    }
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

/// The key of the cell where the kernel of an out row begins; nullopt if the kernel misses the
/// bounding box of the in rows.
std::optional<std::uint64_t> corner_key(KernelMapRequest const& request, BlockFrame const& frame,
                                        std::size_t i) {
    std::int32_t const* const row = row_of(request.out, i);
    bool near = row[0] >= frame.batch.least && row[0] <= frame.batch.most;
    std::array<std::int64_t, 3> at{};
    for (std::size_t axis = 0; axis < request.axes; ++axis) {
        std::size_t const a = axis + 3 - request.axes;
        at[a] = row[axis + 1] * request.stride[axis] + request.offset(0)[axis];
        near =
            near && at[a] + request.size[axis] > frame.axis[a].least && at[a] <= frame.axis[a].most;
    }
    return near ? std::optional(frame.key(row[0], at)) : std::nullopt;
}

RowsByBlock out_rows_by_block(KernelMapRequest const& request, BlockFrame const& frame) {
    RowsByBlock list(0);
    runtime::select(
        runtime::cut(request.out.rows, runtime::kGrain),
        [&](std::size_t begin, std::size_t end) {
            std::size_t kept = 0;
            for (std::size_t i = begin; i < end; ++i) {
                kept += corner_key(request, frame, i).has_value();
            }
            return kept;
        },
        [&](std::size_t total) { list = RowsByBlock(total); },
        [&](std::size_t begin, std::size_t end, std::size_t next) {
            for (std::size_t i = begin; i < end; ++i) {
                if (auto const key = corner_key(request, frame, i)) {
                    list.keys()[next] = *key;
                    list.rows()[next++] = static_cast<std::uint32_t>(i);
                }
            }
        });
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
