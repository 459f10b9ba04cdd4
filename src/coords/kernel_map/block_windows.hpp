// Finds the offsets of a row's kernel that lead to an in row, as words with one bit per offset, and
// lists their pairs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "coords/kernel_map/pair_writer.hpp"
#include "coords/kernel_map/voxel_blocks.hpp"

namespace tensorhash::coords {

/// Rows looked up at a time.
inline constexpr std::size_t kRowsAtOnce = 16;

/// Up to 8 x 8 offsets of the last two axes; bit 8 * y + z.
struct Tile {
    std::size_t x = 0;       // cells from the kernel's first corner
    std::size_t y = 0;       // blocks
    std::size_t z = 0;       // blocks
    std::size_t group = 0;   // of bit 0
    std::uint64_t mask = 0;  // the wanted offsets
};

using Sizes = std::array<std::size_t, 3>;

inline std::vector<Tile> tiles_of(Sizes const& size, std::size_t groups) {
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

/// The blocks that the kernels of one block's queries reach. The other places stay 0.
struct Around {
    std::uint64_t number = ~std::uint64_t{0};
    std::uint32_t block[3][4][4] = {};
};
inline constexpr Around kNothing{};

/// The setup that all queries share.
struct WindowPlan {
    BlockFrame const& frame;
    VoxelBlocks const& blocks;
    RowsByBlock const& queries;
    // Where the kernel of cell 0 begins, in cells from the first block in Around.
    std::array<std::uint64_t, 3> begin{};
    Sizes met{};             // blocks that kernels reach, per axis
    std::uint64_t back = 0;  // query's block number minus that of the first block in Around
    std::size_t length = 1;  // of the kernel's last axis
    std::vector<Tile> tiles{};

    /// `own`: the queries are the in rows. Otherwise a query's key is where its kernel begins.
    WindowPlan(KernelMapRequest const& request, BlockFrame const& in_frame, VoxelBlocks const& in,
               RowsByBlock const& asked, bool own, std::size_t groups)
        : frame(in_frame), blocks(in), queries(asked),
          length(static_cast<std::size_t>(request.size.back())) {
        Sizes size{1, 1, 1};
        for (std::size_t axis = 0; axis < request.axes; ++axis) {
            std::size_t const a = axis + 3 - request.axes;
            size[a] = static_cast<std::size_t>(request.size[axis]);
            if (!own) continue;
            begin[a] = kBlockSide + static_cast<std::uint64_t>(request.offset(0)[axis]);
            back += frame.axis[a].weight;
        }
        tiles = tiles_of(size, groups);
        if (!tiles.empty()) size[0] = tiles.back().x + 1;
        for (std::size_t a = 0; a < 3; ++a) met[a] = (begin[a] + 7 + size[a] - 1) / kBlockSide + 1;
    }
    /// The group of a bit, counted from the tile's first group.
    std::size_t place(std::size_t bit) const noexcept { return bit / 8 * length + bit % 8; }
};

/// A query and a tile with at least one pair.
struct TileMatch {
    std::uint64_t word;  // one bit per offset that leads to an in row
    std::uint32_t const* blocks;
    std::int64_t* next;  // the next place of each group of the tile
    std::uint32_t out_row;
    std::uint16_t x;
    std::uint16_t corner;  // 16 * y + z in the first block
};

/// Up to sixteen queries, and the blocks around them.
class Windows {
public:
    explicit Windows(WindowPlan const& plan) : plan_(plan) {}

    /// Loads queries [begin, end) of the plan's list, at most sixteen.
    void load(std::size_t begin, std::size_t end) {
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

    /// Bits are set for the offsets of the tile that lead to an in row.
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

    TileMatch match(Tile const& tile, std::size_t i, std::uint64_t word,
                    std::int64_t* next) const noexcept {
        Query const& query = query_[i];
        return {word,
                first_block(query, tile),
                next,
                query.row,
                static_cast<std::uint16_t>((query.x + tile.x) % 8),
                static_cast<std::uint16_t>(query.y % 8 * 16 + query.z % 8)};
    }

private:
    struct Query {
        Around const* around;
        std::uint64_t x, y, z;  // where the kernel begins, in cells from the first block in Around
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
                std::uint64_t const first = number + x * axis[0].weight + y * axis[1].weight;
                plan_.blocks.directory().find(first - plan_.back, plan_.met[2], around.block[x][y]);
            }
        }
    }

    WindowPlan const& plan_;
    std::size_t last_ = 0;
    // One per query, and the last one of the previous load().
    std::array<Around, kRowsAtOnce + 1> around_{};
    std::array<Query, kRowsAtOnce> query_{};
};

/// Turns the bits of a match into pairs.
class WindowPairs {
public:
    using Match = TileMatch;

    explicit WindowPairs(WindowPlan const& plan) : blocks_(plan.blocks) {
        for (std::size_t bit = 0; bit < 64; ++bit) {
            place_[bit] = static_cast<std::uint16_t>(plan.place(bit));
        }
    }
    Pair operator()(Match const& match, std::size_t bit) const noexcept {
        std::size_t const cell = match.corner + bit + (bit & 0x38);  // four bits for y, four for z
        std::uint32_t const block = match.blocks[(cell >> 5 & 4) | (cell >> 3 & 1)];
        return {&match.next[place_[bit]],
                blocks_.row(block, match.x, (cell >> 1 & 0x38) | (cell & 7)), match.out_row};
    }

private:
    VoxelBlocks const& blocks_;
    std::array<std::uint16_t, 64> place_{};
};

}  // namespace tensorhash::coords
