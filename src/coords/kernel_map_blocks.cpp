// The blocks path: in rows as bits in blocks, so that a few operations on words answer 64 offsets of a row. Rows are asked
// block by block, while what lies around them is near; pairs are counted first and written exactly.
#include <algorithm>
#include <string>
#include <utility>

#include "coords/finish_groups.hpp"
#include "coords/voxel_blocks.hpp"
#include "runtime/parallel.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::coords {
namespace {

constexpr std::size_t kRowsAtOnce = 16;
constexpr std::size_t kTaskRows = 1024;
constexpr std::int64_t kMaxSize = 16;     // of a kernel's axis: it meets three blocks at most
constexpr std::size_t kMaxSaved = 8;      // words a row that are kept between counting and writing
constexpr std::uint64_t kWordsPerRow = 4;  // of the directory: a box with more is too empty for it
constexpr std::uint64_t kMinWords = 4096;

/// Up to 8 x 8 offsets of the last two axes; bit 8 * y + z.
struct Tile {
    std::size_t x = 0;       // cells from the kernel's first corner
    std::size_t y = 0;       // blocks
    std::size_t z = 0;       // blocks
    std::size_t group = 0;   // of bit 0
    std::uint64_t mask = 0;  // the offsets that are wanted
};

using Sizes = std::array<std::size_t, 3>;

std::vector<Tile> tiles_of(Sizes const& size, std::size_t groups) {
    std::vector<Tile> tiles;
    for (std::size_t x = 0; x < size[0]; ++x) {
        for (std::size_t y = 0; y < size[1]; y += kBlockSide) {
            for (std::size_t z = 0; z < size[2]; z += kBlockSide) {
                std::size_t const group = (x * size[1] + y) * size[2] + z;
                Tile tile{x, y / kBlockSide, z / kBlockSide, group};
                for (std::size_t bit = 0; bit < 64; ++bit) {
                    bool const wanted = y + bit / 8 < size[1] && z + bit % 8 < size[2] &&
                                        group + bit / 8 * size[2] + bit % 8 < groups;
                    tile.mask |= std::uint64_t{wanted} << bit;
                }
                if (tile.mask != 0) tiles.push_back(tile);
            }
        }
    }
    return tiles;
}

/// Counts, for each of 64 bits, the words that have it: sixteen words cost about five operations each.
class BitCounts {
public:
    void add(std::uint64_t const (&w)[kRowsAtOnce]) {
        std::uint64_t twos[8];
        std::uint64_t fours[4];
        std::uint64_t eights[2];
        for (int i = 0; i < 8; ++i) twos[i] = add_up(ones_, w[2 * i], w[2 * i + 1]);
        for (int i = 0; i < 4; ++i) fours[i] = add_up(twos_, twos[2 * i], twos[2 * i + 1]);
        for (int i = 0; i < 2; ++i) eights[i] = add_up(fours_, fours[2 * i], fours[2 * i + 1]);
        spread(add_up(eights_, eights[0], eights[1]), 16);
    }
    std::array<std::int64_t, 64> const& finish() {
        spread(std::exchange(ones_, 0), 1);
        spread(std::exchange(twos_, 0), 2);
        spread(std::exchange(fours_, 0), 4);
        spread(std::exchange(eights_, 0), 8);
        return counts_;
    }

private:
    /// sum + a + b by bit: sum keeps the low digit, the carry is returned.
    static std::uint64_t add_up(std::uint64_t& sum, std::uint64_t a, std::uint64_t b) {
        std::uint64_t const half = sum ^ a;
        std::uint64_t const carry = (sum & a) | (half & b);
        sum = half ^ b;
        return carry;
    }
    void spread(std::uint64_t bits, std::int64_t each) {
        for (; bits != 0; bits &= bits - 1) {
            counts_[static_cast<std::size_t>(std::countr_zero(bits))] += each;
        }
    }

    std::uint64_t ones_ = 0;
    std::uint64_t twos_ = 0;
    std::uint64_t fours_ = 0;
    std::uint64_t eights_ = 0;
    std::array<std::int64_t, 64> counts_{};
};

/// The blocks that kernels of one block's queries meet. Where nothing is filled in, nothing is wanted.
struct Around {
    std::uint64_t number = ~std::uint64_t{0};
    std::uint32_t block[3][4][4] = {};
};
constexpr Around kNothing{};

/// What all queries have in common.
struct Plan {
    BlockFrame const& frame;
    VoxelBlocks const& blocks;
    RowsByBlock const& queries;
    std::array<std::uint64_t, 3> begin{};  // of the kernel of cell 0, in cells of the first block around
    Sizes met{};                           // blocks around, per axis
    std::uint64_t back = 0;                // from a query's block to the first one around
    std::size_t length = 1;                // of the kernel's last axis
    std::vector<Tile> tiles{};

    /// `own`: the queries are the in rows themselves; else a query's key is where its kernel begins.
    Plan(Question const& question, BlockFrame const& in_frame, VoxelBlocks const& in,
         RowsByBlock const& asked, bool own, std::size_t groups)
        : frame(in_frame), blocks(in), queries(asked),
          length(static_cast<std::size_t>(question.size.back())) {
        Sizes size{1, 1, 1};
        for (std::size_t axis = 0; axis < question.axes; ++axis) {
            std::size_t const a = axis + 3 - question.axes;
            size[a] = static_cast<std::size_t>(question.size[axis]);
            if (!own) continue;
            begin[a] = kBlockSide + static_cast<std::uint64_t>(question.offset(0)[axis]);
            back += frame.axis[a].weight;
        }
        tiles = tiles_of(size, groups);
        if (!tiles.empty()) size[0] = tiles.back().x + 1;
        for (std::size_t a = 0; a < 3; ++a) met[a] = (begin[a] + 7 + size[a] - 1) / kBlockSide + 1;
    }
    /// Behind a tile's first group.
    std::size_t place(std::size_t bit) const noexcept { return bit / 8 * length + bit % 8; }
};

/// A query and a tile that meet something.
struct Found {
    std::uint64_t word;  // the offsets that do
    std::uint32_t const* blocks;
    std::int64_t* next;  // where the tile's groups go on
    std::int32_t out_row;
    std::uint16_t x;
    std::uint16_t corner;  // 16 * y + z in the first block
};

/// Some queries at once, and what lies around them.
class Windows {
public:
    explicit Windows(Plan const& plan) : plan_(plan) {}

    /// Queries [begin, end) of the plan's list, sixteen of them at most.
    void ask(std::size_t begin, std::size_t end) {
        Around const* at = &around_[last_];
        for (std::size_t i = 0; i < kRowsAtOnce; ++i) {
            Query& query = query_[i];
            query.around = &kNothing;
            if (begin + i >= end) continue;
            std::uint64_t const key = plan_.queries.keys()[begin + i];
            if (key >> kCellBits != at->number) {
                last_ = (last_ + 1) % around_.size();
                look_around(key >> kCellBits, around_[last_]);
                at = &around_[last_];
            }
            query = {at, plan_.begin[0] + (key >> 6 & 7), plan_.begin[1] + (key >> 3 & 7),
                     plan_.begin[2] + (key & 7), plan_.queries.rows()[begin + i]};
        }
    }

    /// Which of a tile's offsets lead to an in row.
    std::uint64_t word(Tile const& tile, std::size_t i) const noexcept {
        Query const& query = query_[i];
        std::size_t const x = query.x + tile.x;
        std::uint32_t const* const block = first_block(query, tile);
        auto const plane = [&](std::size_t n) { return plan_.blocks.plane(block[n], x % 8); };
        std::uint64_t const y = query.y % 8;
        std::uint64_t const z = query.z % 8;
        std::uint64_t const near = 0x0101010101010101ULL * (0xFFU >> z);
        std::uint64_t const low = (plane(0) >> z & near) | (plane(1) << (8 - z) & ~near);
        std::uint64_t const high = (plane(4) >> z & near) | (plane(5) << (8 - z) & ~near);
        return (low >> 8 * y | high << 1 << (63 - 8 * y)) & tile.mask;
    }

    Found found(Tile const& tile, std::size_t i, std::uint64_t word,
                std::int64_t* next) const noexcept {
        Query const& query = query_[i];
        return {word,
                first_block(query, tile),
                next,
                static_cast<std::int32_t>(query.row),
                static_cast<std::uint16_t>((query.x + tile.x) % 8),
                static_cast<std::uint16_t>(query.y % 8 * 16 + query.z % 8)};
    }

private:
    struct Query {
        Around const* around;
        std::uint64_t x, y, z;  // where the kernel begins, in cells of the first block around
        std::uint32_t row;
    };

    static std::uint32_t const* first_block(Query const& query, Tile const& tile) noexcept {
        auto const& blocks = query.around->block[(query.x + tile.x) / 8];
        return &blocks[query.y / 8 + tile.y][query.z / 8 + tile.z];
    }

    void look_around(std::uint64_t number, Around& around) const {
        around.number = number;
        auto const& axis = plan_.frame.axis;
        for (std::size_t x = 0; x < plan_.met[0]; ++x) {
            for (std::size_t y = 0; y < plan_.met[1]; ++y) {
                for (std::size_t z = 0; z < plan_.met[2]; ++z) {
                    std::uint64_t const steps =
                        x * axis[0].weight + y * axis[1].weight + z * axis[2].weight;
                    around.block[x][y][z] = plan_.blocks.find(number - plan_.back + steps);
                }
            }
        }
    }

    Plan const& plan_;
    std::size_t last_ = 0;
    std::array<Around, kRowsAtOnce + 1> around_{};  // of these queries, and of the last one before
    std::array<Query, kRowsAtOnce> query_{};
};

/// Writes pairs. How many a word holds nobody can guess, so words are listed first, and one loop goes over all their pairs.
class PairWriter {
public:
    PairWriter(Plan const& plan, Answer& answer)
        : blocks_(plan.blocks), in_maps_(answer.in_maps.as_mutable<std::int32_t>().data()),
          out_maps_(answer.out_maps.as_mutable<std::int32_t>().data()) {
        for (std::size_t bit = 0; bit < 64; ++bit) {
            place_[bit] = static_cast<std::uint16_t>(plan.place(bit));
        }
    }

    void add(Found const& found) {
        list_[listed_] = found;
        listed_ += found.word != 0;
        pairs_ += static_cast<std::size_t>(std::popcount(found.word));
        if (listed_ == kListed) flush();
    }

    void flush() {
        Found const* at = list_.data();
        std::uint64_t word = at->word;
        for (; pairs_ != 0; --pairs_) {
            auto const bit = static_cast<std::size_t>(std::countr_zero(word));
            std::size_t const cell = at->corner + bit + (bit & 0x38);  // four bits for y, four for z
            std::uint32_t const block = at->blocks[(cell >> 5 & 4) | (cell >> 3 & 1)];
            std::int64_t const to = at->next[place_[bit]]++;
            in_maps_[to] = static_cast<std::int32_t>(
                blocks_.row(block, at->x, (cell >> 1 & 0x38) | (cell & 7)));
            out_maps_[to] = at->out_row;
            word &= word - 1;
            bool const done = word == 0;  // then on to the next word, without a branch
            word |= at[1].word & -std::uint64_t{done};
            at += done;
        }
        listed_ = 0;
    }

private:
    static constexpr std::size_t kListed = 64;

    VoxelBlocks const& blocks_;
    std::int32_t* in_maps_;
    std::int32_t* out_maps_;
    std::array<std::uint16_t, 64> place_{};
    std::array<Found, kListed + 1> list_{};
    std::size_t listed_ = 0;
    std::size_t pairs_ = 0;
};

/// All queries in tasks that count, then write.
class BlockSweeps {
public:
    BlockSweeps(Plan const& plan, std::size_t groups)
        : plan_(plan), groups_(groups), chunks_(runtime::cut(plan.queries.size, kTaskRows)),
          next_(groups * chunks_.count) {
        if (plan.tiles.size() <= kMaxSaved) {
            std::size_t const batches = plan.queries.size / kRowsAtOnce + 1;
            saved_ = runtime::Block(batches * plan.tiles.size() * sizeof(Words));
        }
    }

    /// Pairs of each group; after it write() knows its places.
    std::vector<std::int64_t> count() {
        runtime::for_chunks(chunks_, [&](std::size_t chunk, std::size_t begin, std::size_t end) {
            count_chunk(begin, end, next_.data() + chunk * groups_);
        });
        std::vector<std::int64_t> totals(groups_);
        for (std::size_t chunk = 0; chunk < chunks_.count; ++chunk) {
            for (std::size_t group = 0; group < groups_; ++group) {
                std::int64_t& own = next_[chunk * groups_ + group];
                totals[group] += std::exchange(own, totals[group]);
            }
        }
        return totals;
    }

    /// Writes the pairs of each group in the order of the queries.
    void write(Answer& answer) {
        auto const offsets = answer.offsets.as<std::int64_t>();
        runtime::for_chunks(chunks_, [&](std::size_t chunk, std::size_t begin, std::size_t end) {
            std::int64_t* const next = next_.data() + chunk * groups_;
            for (std::size_t group = 0; group < groups_; ++group) next[group] += offsets[group];
            write_chunk(begin, end, next, answer);
        });
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
        PairWriter writer(plan_, answer);
        for (std::size_t row = begin; row < end; row += kRowsAtOnce) {
            windows.ask(row, end);
            for (std::size_t t = 0; t < plan_.tiles.size(); ++t) {
                Tile const& tile = plan_.tiles[t];
                Words own;
                Words const& words = kept(row, t, own);
                for (std::size_t i = 0; i < kRowsAtOnce; ++i) {
                    std::uint64_t const word = &words == &own ? windows.word(tile, i) : words[i];
                    writer.add(windows.found(tile, i, word, next + tile.group));
                }
            }
            writer.flush();
        }
    }

    Plan const& plan_;
    std::size_t groups_;
    runtime::Chunks chunks_;
    std::vector<std::int64_t> next_;  // [chunk, group]: counts, then places
    runtime::Block saved_{};          // [16 rows, tile] words, if they are few
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
        std::uint32_t const own =
            blocks.row(blocks.find(key >> kCellBits), key >> 6 & 7, key & 63);
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

Answer answer_in(Question const& question, BlockFrame const& frame) {
    RowsByBlock const in = in_rows_by_block(question.in, frame);
    VoxelBlocks const blocks(in, frame);
    if (blocks.repeated() && question.duplicates == Duplicates::Refuse) {
        report_repeated(in, blocks);
    }
    Swept const swept(question, blocks.repeated());
    bool const own = asks_own_rows(question);
    std::optional<RowsByBlock> out;
    if (!own) out = out_rows_by_block(question, frame);
    RowsByBlock const& queries = own ? in : *out;
    Plan const plan(question, frame, blocks, queries, own, swept.groups);
    BlockSweeps sweeps(plan, swept.groups);
    Answer answer = make_room(question, swept, sweeps.count());
    answer.repeated = blocks.repeated();
    sweeps.write(answer);
    bool const in_order = std::is_sorted(queries.rows(), queries.rows() + queries.size);
    finish_groups(answer, question.out.rows, swept, in_order);
    return answer;
}

}  // namespace

bool blocks_take(Question const& question) noexcept {
    return question.axes <= 3 && question.in.rows > 0 &&
           question.dilation == Shape(question.axes, 1) &&
           std::all_of(question.size.begin(), question.size.end(),
                       [](std::int64_t size) { return size <= kMaxSize; });
}

void check_blocks_take(Question const& question) {
    std::string const end = "; use strategy=\"merge\" or None";
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
