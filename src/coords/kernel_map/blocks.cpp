// The blocks path: in rows as bits in blocks, so that a few operations on words answer 64 offsets of a row. Rows are asked
// block by block, while what lies around them is near; pairs are counted first and written exactly.
#include <algorithm>
#include <optional>
#include <span>
#include <string>

#include "coords/kernel_map/bit_counts.hpp"
#include "coords/kernel_map/block_windows.hpp"
#include "coords/kernel_map/finish_groups.hpp"
#include "coords/kernel_map/plane_sweeps.hpp"
#include "runtime/parallel.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::coords {
namespace {

constexpr std::size_t kTaskRows = 1024;
constexpr std::int64_t kMaxSize = 16;      // of a kernel's axis: it meets three blocks at most
constexpr std::size_t kMaxSaved = 8;       // words a row that are kept between counting and writing
constexpr std::uint64_t kWordsPerRow = 4;  // of the directory: a box with more is too empty for it
constexpr std::uint64_t kMinWords = 4096;

/// All queries in tasks that count, then write.
class BlockSweeps {
public:
    BlockSweeps(Plan const& plan, std::size_t groups)
        : plan_(plan), chunks_(runtime::cut(plan.queries.size, kTaskRows)),
          places_(chunks_.count, groups) {
        if (plan.tiles.size() <= kMaxSaved) {
            std::size_t const batches = plan.queries.size / kRowsAtOnce + 1;
            saved_ = runtime::Block(batches * plan.tiles.size() * sizeof(Words));
        }
    }

    /// Pairs of each group; after it write() knows its places.
    std::vector<std::int64_t> count() {
        runtime::for_chunks(chunks_, [&](std::size_t chunk, std::size_t begin, std::size_t end) {
            count_chunk(begin, end, places_.of(chunk));
        });
        return places_.totals();
    }

    /// Writes the pairs of each group in the order of the queries.
    void write(Answer& answer) {
        auto const offsets = answer.offsets.as<std::int64_t>();
        runtime::for_chunks(chunks_, [&](std::size_t chunk, std::size_t begin, std::size_t end) {
            write_chunk(begin, end, places_.places(chunk, offsets), answer);
        });
    }
    std::span<std::uint32_t const> rows() const {
        return {plan_.queries.rows(), plan_.queries.size};
    }

private:
    using Words = std::uint64_t[kRowsAtOnce];

    /// Where the words of a tile are kept, or `own` if they are not.
    Words& kept(std::size_t row, std::size_t tile, Words& own) {
        if (saved_.data() == nullptr) return own;
        std::size_t const at = row / kRowsAtOnce * plan_.tiles.size() + tile;
        return reinterpret_cast<Words*>(saved_.data())[at];
    }

    void count_chunk(std::size_t begin, std::size_t end, std::int64_t* totals) {
        Windows windows(plan_);
        std::vector<BitCounts> counts(plan_.tiles.size());
        for (std::size_t row = begin; row < end; row += kRowsAtOnce) {
            windows.ask(row, end);
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

    void write_chunk(std::size_t begin, std::size_t end, std::int64_t* next, Answer& answer) {
        Windows windows(plan_);
        PairWriter<WindowPairs> writer(answer, WindowPairs(plan_));
        for (std::size_t row = begin; row < end; row += kRowsAtOnce) {
            windows.ask(row, end);
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
                    writer.add(windows.found(tile, i, words[i], next + tile.group));
                }
            }
            writer.flush();
        }
    }

    Plan const& plan_;
    runtime::Chunks chunks_;
    GroupPlaces places_;
    runtime::Block saved_{};  // [16 rows, tile] words, if they are few
};

/// The queries are the in rows themselves, and their kernels reach into the next blocks only.
bool asks_own_rows(Question const& question) {
    auto const side = static_cast<std::int64_t>(kBlockSide);
    bool near = question.equal && question.unstrided;
    for (std::size_t axis = 0; axis < question.axes; ++axis) {
        near = near && question.offset(0)[axis] >= -side &&
               question.offset(question.all - 1)[axis] <= side;
    }
    return near;
}

/// Where an out row's kernel begins, or nothing if it meets no in row.
std::optional<std::uint64_t> corner_key(Question const& question, BlockFrame const& frame,
                                        std::size_t i) {
    std::int32_t const* const row = row_of(question.out, i);
    bool near = row[0] >= frame.batch.least && row[0] <= frame.batch.most;
    std::array<std::int64_t, 3> at{};
    for (std::size_t axis = 0; axis < question.axes; ++axis) {
        std::size_t const a = axis + 3 - question.axes;
        at[a] = row[axis + 1] * question.stride[axis] + question.offset(0)[axis];
        near = near && at[a] + question.size[axis] > frame.axis[a].least &&
               at[a] <= frame.axis[a].most;
    }
    return near ? std::optional(frame.key(row[0], at)) : std::nullopt;
}

RowsByBlock out_rows_by_block(Question const& question, BlockFrame const& frame) {
    runtime::Chunks const chunks = runtime::cut(question.out.rows, runtime::kGrain);
    std::vector<std::size_t> first(chunks.count + 1, 0);
    runtime::for_chunks(chunks, [&](std::size_t chunk, std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            first[chunk + 1] += corner_key(question, frame, i).has_value();
        }
    });
    for (std::size_t chunk = 0; chunk < chunks.count; ++chunk) first[chunk + 1] += first[chunk];
    RowsByBlock list(first.back());
    runtime::for_chunks(chunks, [&](std::size_t chunk, std::size_t begin, std::size_t end) {
        std::size_t next = first[chunk];
        for (std::size_t i = begin; i < end; ++i) {
            if (auto const key = corner_key(question, frame, i)) {
                list.keys()[next] = *key;
                list.rows()[next++] = static_cast<std::uint32_t>(i);
            }
        }
    });
    list.sort(frame);
    return list;
}

/// The repeated row with the smallest number, as the other paths report it.
[[noreturn]] void report_repeated(RowsByBlock const& in, VoxelBlocks const& blocks) {
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
    fail_repeated(row, first);
}

/// One margin around the box is enough for kernels up to 9 wide, and where the queries are the in rows themselves.
std::optional<BlockFrame> frame_for(Question const& question) {
    bool const wide = std::any_of(question.size.begin(), question.size.end(),
                                  [](std::int64_t size) { return size > 9; });
    auto frame = BlockFrame::of(question.in, wide ? 2 : 1);
    std::uint64_t const most = kWordsPerRow * question.in.rows + kMinWords;
    if (frame && BlockDirectory::words(frame->blocks) > most) frame.reset();
    return frame;
}

/// Counts, makes room, writes, and brings the groups into the order of rows.
template <class Sweeps>
Answer answer_by(Sweeps&& sweeps, Question const& question, Swept const& swept) {
    Answer answer = make_room(question, swept, sweeps.count());
    sweeps.write(answer);
    auto const rows = sweeps.rows();
    finish_groups(answer, question.out.rows, swept, std::is_sorted(rows.begin(), rows.end()));
    return answer;
}

Answer answer_in(Question const& question, BlockFrame const& frame) {
    std::optional<RowsByBlock> in = in_rows_by_block(question.in, frame);
    VoxelBlocks const blocks(*in, frame);
    if (blocks.repeated() && question.duplicates == Duplicates::Refuse) {
        report_repeated(*in, blocks);
    }
    Swept const swept(question, blocks.repeated());
    if (PlaneSweeps::take(question, swept, blocks.repeated())) {
        in.reset();
        return answer_by(PlaneSweeps(question, frame, blocks), question, swept);
    }
    bool const own = asks_own_rows(question);
    if (!own) in = out_rows_by_block(question, frame);
    Plan const plan(question, frame, blocks, *in, own, swept.groups);
    Answer answer = answer_by(BlockSweeps(plan, swept.groups), question, swept);
    answer.repeated = blocks.repeated();
    return answer;
}

}  // namespace

bool blocks_take(Question const& question) noexcept {
    return question.axes <= 3 && question.in.rows > 0 &&
           std::all_of(question.dilation.begin(), question.dilation.end(),
                       [](std::int64_t dilation) { return dilation == 1; }) &&
           std::all_of(question.size.begin(), question.size.end(),
                       [](std::int64_t size) { return size <= kMaxSize; });
}

void check_blocks_take(Question const& question) {
    std::string const end = "; use the strategy merge or the fastest";
    if (question.axes > 3) {
        throw ValueError("kernel_size: the blocks path takes 2 or 3 axes, got " +
                         std::to_string(question.axes) + end);
    }
    for (std::size_t axis = 0; axis < question.axes; ++axis) {
        std::string const at = "axis " + std::to_string(axis) + ": the blocks path takes ";
        if (question.size[axis] > kMaxSize) {
            throw ValueError("kernel_size: " + at + "1 to " + std::to_string(kMaxSize) + ", got " +
                             std::to_string(question.size[axis]) + end);
        }
        if (question.dilation[axis] != 1) {
            throw ValueError("kernel_dilation: " + at + "1, got " +
                             std::to_string(question.dilation[axis]) + end);
        }
    }
}

std::optional<Answer> blocks_kernel_map(Question const& question) {
    auto const frame = frame_for(question);
    return frame ? std::optional(answer_in(question, *frame)) : std::nullopt;
}

}  // namespace tensorhash::coords
