// The blocks path: in rows as bits in blocks, so that one word tells 64 offsets of a row at once. Rows are asked in their
// own order and every pair is written where it belongs: nothing is sorted but the blocks.
#include <algorithm>
#include <utility>

#include "coords/finish_groups.hpp"
#include "coords/sort.hpp"
#include "coords/voxel_blocks.hpp"
#include "runtime/parallel.hpp"

namespace tensorhash::coords {
namespace {

constexpr std::size_t kRowsAtOnce = 16;
constexpr std::uint64_t kMaxSize = 16;  // of a kernel's axis: it meets three blocks at most
constexpr std::size_t kTaskRows = 1024;

/// 8 x 8 offsets of the last two axes; bit 8 * y + z.
struct Tile {
    std::size_t x = 0;
    std::size_t y = 0;  // in blocks
    std::size_t z = 0;
    std::uint64_t mask = 0;      // the offsets that are wanted
    std::size_t group = 0;  // of bit 0
};

std::vector<Tile> tiles_of(std::array<std::uint64_t, 3> const& size, std::size_t groups) {
    std::vector<Tile> tiles;
    for (std::size_t x = 0; x < size[0]; ++x) {
        for (std::size_t y = 0; y < size[1]; y += kBlockSide) {
            for (std::size_t z = 0; z < size[2]; z += kBlockSide) {
                Tile tile{x, y / kBlockSide, z / kBlockSide, 0, (x * size[1] + y) * size[2] + z};
                for (std::size_t bit = 0; bit < 64; ++bit) {
                    std::size_t const j = bit / 8, i = bit % 8;
                    bool const wanted = y + j < size[1] && z + i < size[2] &&
                                        tile.group + j * size[2] + i < groups;
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
    void add(std::uint64_t const* w) {
        std::uint64_t twos[8];
        std::uint64_t fours[4];
        std::uint64_t eights[2];
        for (int i = 0; i < 8; ++i) twos[i] = add_up(ones_, w[2 * i], w[2 * i + 1]);
        for (int i = 0; i < 4; ++i) fours[i] = add_up(twos_, twos[2 * i], twos[2 * i + 1]);
        for (int i = 0; i < 2; ++i) eights[i] = add_up(fours_, fours[2 * i], fours[2 * i + 1]);
        std::uint64_t const sixteens = add_up(eights_, eights[0], eights[1]);
        spread(sixteens, 16);
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
    std::uint64_t ones_ = 0, twos_ = 0, fours_ = 0, eights_ = 0;
    std::array<std::int64_t, 64> counts_{};
};

/// The blocks that kernels which begin in or after one block meet. The ends are never filled: what reaches there is masked.
struct Around {
    std::uint64_t number = ~std::uint64_t{0};
    std::uint32_t block[3][4][4] = {};
};

/// What all queries have in common.
struct Plan {
    BlockFrame const& frame;
    VoxelBlocks const& blocks;
    std::array<std::uint32_t, 3> begin{};  // where the kernel of a block's first cell begins, from the first block around
    std::array<std::uint32_t, 3> met{};    // blocks around, per axis
    std::uint64_t back = 0;                // from a query's block number to the first block around
    std::vector<Tile> tiles{};
};

/// Some queries, and what lies around them.
class Windows {
public:
    explicit Windows(Plan const& plan) : plan_(plan), blocks_(plan.blocks) {}

    void ask(std::uint64_t const* keys, std::size_t count) {
        Around const* at = &around_[last_];
        for (std::size_t i = 0; i < kRowsAtOnce; ++i) {
            if (i >= count) {
                query_[i].around = &kNothing;
                continue;
            }
            std::uint64_t const number = keys[i] >> kCellBits;
            if (number != at->number) {
                last_ = (last_ + 1) % around_.size();
                look_around(number, around_[last_]);
                at = &around_[last_];
            }
            query_[i].around = at;
            query_[i].x = plan_.begin[0] + (keys[i] >> 6 & 7);
            query_[i].y = plan_.begin[1] + (keys[i] >> 3 & 7);
            query_[i].z = plan_.begin[2] + (keys[i] & 7);
        }
    }

    /// The in rows that the tile's offsets lead to, as bits.
    std::uint64_t word(Tile const& tile, std::size_t i) const noexcept {
        Query const& query = query_[i];
        std::size_t const x = query.x + tile.x;
        std::uint32_t const* const ids = &query.around->block[x / 8][query.y / 8 + tile.y][query.z / 8 + tile.z];
        auto const y = query.y % 8, z = query.z % 8;
        std::uint64_t const near = 0x0101010101010101ULL * (0xFFU >> z);
        std::uint64_t const low = (plane(ids[0], x) >> z & near) | (plane(ids[1], x) << (8 - z) & ~near);
        std::uint64_t const high = (plane(ids[4], x) >> z & near) | (plane(ids[5], x) << (8 - z) & ~near);
        return (low >> (8 * y) | high << 1 << (63 - 8 * y)) & tile.mask;
    }

    /// Calls visit(bit, in row) for the bits of a word.
    template <class Visit>
    void each(Tile const& tile, std::size_t i, std::uint64_t word, Visit visit) const {
        Query const& query = query_[i];
        std::size_t const x = query.x + tile.x;
        std::uint32_t const* const ids = &query.around->block[x / 8][query.y / 8 + tile.y][query.z / 8 + tile.z];
        std::size_t const corner = query.y % 8 * 16 + query.z % 8;
        std::uint32_t const* const rows = blocks_.rows();
        for (; word != 0; word &= word - 1) {
            auto const bit = static_cast<std::size_t>(std::countr_zero(word));
            std::size_t const at = corner + bit + (bit & 0x38);  // four bits for y, four for z
            std::uint32_t const block = ids[(at >> 5 & 4) | (at >> 3 & 1)];
            std::size_t const cell = (at & 7) | (at >> 1 & 0x38);
            std::uint64_t const below = plane(block, x) & ((std::uint64_t{1} << cell) - 1);
            visit(bit, rows[blocks_.before(block)[x % 8] + static_cast<std::size_t>(std::popcount(below))]);
        }
    }

private:
    struct Query {
        Around const* around;
        std::uint64_t x, y, z;
    };
    static constexpr Around kNothing{};

    std::uint64_t plane(std::uint32_t block, std::size_t x) const noexcept {
        return blocks_.cells(block)[x % 8];
    }

    void look_around(std::uint64_t number, Around& around) const {
        around.number = number;
        number -= plan_.back;
        auto const& axis = plan_.frame.axis;
        for (std::size_t x = 0; x < plan_.met[0]; ++x) {
            for (std::size_t y = 0; y < plan_.met[1]; ++y) {
                for (std::size_t z = 0; z < plan_.met[2]; ++z) {
                    around.block[x][y][z] =
                        blocks_.find(number + x * axis[0].weight + y * axis[1].weight + z * axis[2].weight);
                }
            }
        }
    }

    Plan const& plan_;
    VoxelBlocks const& blocks_;
    std::size_t last_ = 0;
    std::array<Around, kRowsAtOnce + 1> around_{};
    std::array<Query, kRowsAtOnce> query_{};
};

/// Of equal coordinates, unstrided: the queries are the in rows themselves.
bool shares_rows(Question const& question, BlockFrame const&) {
    bool near = question.equal && question.unstrided;
    for (std::size_t axis = 0; axis < question.axes; ++axis) {
        near = near && question.offset(0)[axis] >= -8 && question.offset(question.all - 1)[axis] <= 8;
    }
    return near;
}

Plan plan_for(Question const& question, BlockFrame const& frame, VoxelBlocks const& blocks, bool shared, std::size_t groups) {
    Plan plan{frame, blocks};
    std::array<std::uint64_t, 3> size{1, 1, 1};
    for (std::size_t axis = 0; axis < question.axes; ++axis) {
        std::size_t const a = axis + 3 - question.axes;
        size[a] = static_cast<std::uint64_t>(question.size[axis]);
        if (shared) {
            plan.begin[a] = static_cast<std::uint32_t>(8 + question.offset(0)[axis]);
            plan.back += frame.axis[a].weight;
        }
    }
    plan.tiles = tiles_of(size, groups);
    size[0] = plan.tiles.empty() ? 1 : plan.tiles.back().x + 1;
    for (std::size_t a = 0; a < 3; ++a) {
        plan.met[a] = static_cast<std::uint32_t>((plan.begin[a] + 7 + size[a] - 1) / 8 + 1);
    }
    return plan;
}

/// The out rows that may meet an in row, by the block where their kernels begin.
RowsByBlock out_rows_by_block(Question const& question, BlockFrame const& frame) {
    CoordRows const& out = question.out;
    RowsByBlock list(out.rows);
    std::size_t kept = 0;
    for (std::size_t i = 0; i < out.rows; ++i) {
        std::int32_t const* const row = row_of(out, i);
        std::array<std::int64_t, 3> at{};
        bool near = row[0] >= frame.batch.least && row[0] <= frame.batch.most;
        for (std::size_t axis = 0; axis < question.axes; ++axis) {
            std::size_t const a = axis + 3 - question.axes;
            at[a] = row[axis + 1] * question.stride[axis] + question.offset(0)[axis];
            near = near && at[a] + question.size[axis] > frame.axis[a].least && at[a] <= frame.axis[a].most;
        }
        if (!near) continue;
        list.keys()[kept] = frame.key(row[0], at);
        list.rows()[kept++] = static_cast<std::uint32_t>(i);
    }
    list.size = kept;
    sort_rows(list.keys(), list.rows(), kept, (frame.blocks << kCellBits) - 1, kCellBits);
    return list;
}

Answer answer_from(Question const& question, Plan const& plan, RowsByBlock const& queries, std::size_t swept, bool mirror) {
    std::vector<Tile> const& tiles = plan.tiles;
    auto const length = static_cast<std::size_t>(question.size.back());
    runtime::Chunks const chunks = runtime::cut(queries.size, kTaskRows);
    std::vector<std::int64_t> next(swept * chunks.count);  // [chunk, group]
    runtime::for_chunks(chunks, [&](std::size_t chunk, std::size_t begin, std::size_t end) {
        Windows windows(plan);
        std::vector<BitCounts> counts(tiles.size());
        for (; begin < end; begin += kRowsAtOnce) {
            windows.ask(queries.keys() + begin, end - begin);
            for (std::size_t t = 0; t < tiles.size(); ++t) {
                std::uint64_t words[kRowsAtOnce];
                for (std::size_t i = 0; i < kRowsAtOnce; ++i) words[i] = windows.word(tiles[t], i);
                counts[t].add(words);
            }
        }
        for (std::size_t t = 0; t < tiles.size(); ++t) {
            auto const& count = counts[t].finish();
            for (std::uint64_t bits = tiles[t].mask; bits != 0; bits &= bits - 1) {
                auto const bit = static_cast<std::size_t>(std::countr_zero(bits));
                next[chunk * swept + tiles[t].group + bit / 8 * length + bit % 8] = count[bit];
            }
        }
    });
    Answer answer;
    answer.offsets = Tensor::zeros({static_cast<std::int64_t>(question.groups) + 1}, Dtype::Int64);
    auto const offsets = answer.offsets.as_mutable<std::int64_t>();
    std::vector<std::int64_t> totals(question.groups);
    for (std::size_t group = 0; group < swept; ++group) {
        for (std::size_t chunk = 0; chunk < chunks.count; ++chunk) totals[group] += next[chunk * swept + group];
    }
    for (std::size_t group = 0; group < question.groups; ++group) {
        offsets[group + 1] = offsets[group] + (group < swept ? totals[group] : group == swept ? static_cast<std::int64_t>(question.out.rows) : totals[2 * swept - group]);
    }
    for (std::size_t group = 0; group < swept; ++group) {
        std::int64_t at = offsets[group];
        for (std::size_t chunk = 0; chunk < chunks.count; ++chunk) {
            at += std::exchange(next[chunk * swept + group], at);
        }
    }
    answer.in_maps = Tensor::empty({offsets.back()}, Dtype::Int32);
    answer.out_maps = Tensor::empty({offsets.back()}, Dtype::Int32);
    std::int32_t* const in_maps = answer.in_maps.as_mutable<std::int32_t>().data();
    std::int32_t* const out_maps = answer.out_maps.as_mutable<std::int32_t>().data();
    std::array<std::uint16_t, 64> group_of{};
    for (std::size_t bit = 0; bit < 64; ++bit) {
        group_of[bit] = static_cast<std::uint16_t>(bit / 8 * length + bit % 8);
    }
    runtime::for_chunks(chunks, [&](std::size_t chunk, std::size_t begin, std::size_t end) {
        Windows windows(plan);
        for (; begin < end; begin += kRowsAtOnce) {
            std::uint32_t const* const rows = queries.rows() + begin;
            windows.ask(queries.keys() + begin, end - begin);
            for (Tile const& tile : tiles) {
                std::int64_t* const places = next.data() + chunk * swept + tile.group;
                for (std::size_t i = 0; i < kRowsAtOnce; ++i) {
                    std::uint64_t const word = windows.word(tile, i);
                    if (word == 0) continue;
                    auto const out = static_cast<std::int32_t>(rows[i]);
                    windows.each(tile, i, word, [&](std::size_t bit, std::uint32_t row) {
                        std::int64_t const at = places[group_of[bit]]++;
                        in_maps[at] = static_cast<std::int32_t>(row);
                        out_maps[at] = out;
                    });
                }
            }
        }
    });
    Finish(answer, question.out.rows, false).run(swept, mirror);
    return answer;
}

}  // namespace

Answer blocks_kernel_map(Question const& question) {
    auto const frame = BlockFrame::of(question.in);
    RowsByBlock const in = in_rows_by_block(question.in, *frame);
    VoxelBlocks const blocks(in, *frame);
    if (blocks.repeated()) return merge_kernel_map(question);
    bool const mirror = question.mirrored() && question.groups == question.all;
    std::size_t const swept = mirror ? question.all / 2 : question.groups;
    bool const shared = shares_rows(question, *frame);
    Plan const plan = plan_for(question, *frame, blocks, shared, swept);
    if (shared) return answer_from(question, plan, in, swept, mirror);
    return answer_from(question, plan, out_rows_by_block(question, *frame), swept, mirror);
}

}  // namespace tensorhash::coords
