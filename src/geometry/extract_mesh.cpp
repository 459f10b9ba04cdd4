// Marching cubes over the blocks of a grid. A vertex belongs to the voxel where its edge begins.
// Pass 1 lists the cubes with a surface; pass 2 marks the vertices of each block, also those of
// cubes in other blocks; passes 3 and 4 write vertices and triangles. Blocks write only their own.
#include <bit>
#include <limits>
#include <ranges>
#include <string>
#include <vector>

#include "geometry/blocks.hpp"
#include "geometry/cubes.hpp"
#include "geometry/surface.hpp"
#include "runtime/scan.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::geometry {
namespace {

/// A cube with triangles, and its row of kCubeCases.
struct Cube {
    std::uint16_t x;
    std::uint16_t y;
    std::uint16_t z;
    std::uint16_t negative;

    int at(std::size_t axis) const noexcept { return axis == 0 ? x : axis == 1 ? y : z; }
};

/// What the corner of a cube is. Corners of one cube are joined by |.
enum Corner : std::uint8_t { Positive = 0, Negative = 1, Unknown = 2 };

class CubeFinder {
public:
    CubeFinder(BlockBuffers const& blocks, Neighbourhood const& around, float threshold)
        : blocks_(blocks), around_(around), threshold_(threshold),
          side_(static_cast<std::size_t>(blocks.resolution)), row_(side_ + 1) {}

    void list(std::size_t block, std::vector<Cube>& out) const {
        std::vector<std::uint8_t> corners(row_ * row_ * row_);
        std::uint8_t any = 0;
        for (std::size_t z = 0; z < row_; ++z) {
            for (std::size_t y = 0; y < row_; ++y) {
                any |= read_row(block, y, z, corners.data() + (z * row_ + y) * row_);
            }
        }
        if ((any & Negative) == 0) return;
        for (std::size_t z = 0; z < side_; ++z) {
            for (std::size_t y = 0; y < side_; ++y) list_row(corners.data(), y, z, out);
        }
    }

private:
    std::uint8_t corner(std::size_t voxel) const noexcept {
        if (!(blocks_.weight[voxel] > threshold_)) return Unknown;
        return blocks_.distance(voxel) < 0 ? Negative : Positive;
    }

    /// The corners of one row, the first of the next block included.
    std::uint8_t read_row(std::size_t block, std::size_t y, std::size_t z,
                          std::uint8_t* out) const noexcept {
        int const dy = y == side_;
        int const dz = z == side_;
        std::size_t const start = ((dz ? 0 : z) * side_ + (dy ? 0 : y)) * side_;
        std::uint8_t any = 0;
        for (int dx = 0; dx < 2; ++dx) {
            std::size_t const begin = dx == 0 ? 0 : side_;
            std::size_t const end = dx == 0 ? side_ : side_ + 1;
            std::int32_t const owner = around_.at(block, dx, dy, dz);
            if (owner == Neighbourhood::kNoBlock) {
                std::fill(out + begin, out + end, std::uint8_t{Unknown});
                continue;
            }
            std::size_t const first =
                around_.index(static_cast<std::size_t>(owner)) * blocks_.voxels + start;
            for (std::size_t x = begin; x < end; ++x) {
                out[x] = corner(first + x - begin);
                any |= out[x];
            }
        }
        return any;
    }

    void list_row(std::uint8_t const* corners, std::size_t y, std::size_t z,
                  std::vector<Cube>& out) const {
        std::uint8_t const* const near = corners + (z * row_ + y) * row_;
        std::uint8_t const* const far = near + row_ * row_;
        auto const column = [&](std::size_t x) {
            return static_cast<unsigned>(near[x] | near[x + row_] << 2 | far[x] << 4 |
                                         far[x + row_] << 6);
        };
        unsigned before = column(0);
        for (std::size_t x = 0; x < side_; ++x) {
            unsigned const after = column(x + 1);
            unsigned const all = before | after;
            bool const is_known = (all & 0xaa) == 0;
            bool const is_mixed = all != 0 && (before & after) != 0x55;
            if (is_known && is_mixed) {
                // Columns hold every second bit of the case; x = 1 is the odd corner.
                out.push_back({static_cast<std::uint16_t>(x), static_cast<std::uint16_t>(y),
                               static_cast<std::uint16_t>(z),
                               static_cast<std::uint16_t>(before | after << 1)});
            }
            before = after;
        }
    }

    BlockBuffers const& blocks_;
    Neighbourhood const& around_;
    float threshold_;
    std::size_t side_;
    std::size_t row_;
};

/// The vertices of one block: three bits per voxel, one per axis.
struct BlockVertices {
    std::vector<std::uint8_t> marks;       // empty if the block has no vertex
    std::vector<std::uint32_t> row_first;  // the vertices before each row of voxels
    std::size_t count = 0;
    std::size_t first = 0;  // the number of its first vertex

    /// The number of a vertex.
    std::size_t number(std::size_t side, std::size_t voxel, unsigned axis) const noexcept {
        std::size_t const row = voxel / side;
        std::size_t found = first + row_first[row];
        for (std::size_t i = row * side; i < voxel; ++i) found += count_bits(marks[i]);
        return found + count_bits(marks[voxel] & ((1u << axis) - 1));
    }
    static std::size_t count_bits(unsigned mark) noexcept {
        return static_cast<std::size_t>(std::popcount(mark));
    }
};

class Mesher {
public:
    Mesher(BlockBuffers const& blocks, Neighbourhood const& around, float threshold)
        : around_(around), surface_(blocks, around), colored_(blocks.color),
          side_(static_cast<std::size_t>(blocks.resolution)), cubes_(around.count()),
          vertices_(around.count()) {
        CubeFinder const finder(blocks, around, threshold);
        for_blocks(around.count(), [&](std::size_t block) { finder.list(block, cubes_[block]); });
        for_blocks(around.count(), [&](std::size_t block) { mark(block); });
    }

    SurfaceMesh mesh() {
        for (BlockVertices& block : vertices_) block.first = block.count;
        std::size_t const total =
            runtime::scan(vertices_ | std::views::transform(&BlockVertices::first));
        if (total > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) {
            throw ValueError("weight_threshold: expected fewer than 2^31 vertices, got " +
                             std::to_string(total) + "; use a larger voxel_size");
        }
        SurfaceRows rows(total, colored_);
        for_blocks(around_.count(), [&](std::size_t block) { write_vertices(block, rows); });
        return {std::move(rows.out), triangles()};
    }

private:
    /// Marks the vertices that cubes of this block and of the blocks before it need.
    void mark(std::size_t block) {
        for (int before = 0; before < 8; ++before) {
            std::array<int, 3> const back{before & 1, before >> 1 & 1, before >> 2 & 1};
            std::int32_t const owner = around_.at(block, -back[0], -back[1], -back[2]);
            if (owner == Neighbourhood::kNoBlock) continue;
            for (Cube const& cube : cubes_[static_cast<std::size_t>(owner)]) {
                mark_cube(cube, back, vertices_[block]);
            }
        }
        count(vertices_[block]);
    }

    void mark_cube(Cube const& cube, std::array<int, 3> const& back, BlockVertices& out) const {
        int const last = static_cast<int>(side_) - 1;
        for (std::size_t axis = 0; axis < 3; ++axis) {
            if (back[axis] == 1 && cube.at(axis) != last) return;  // reaches no voxel of this block
        }
        CubeCase const& shape = kCubeCases[cube.negative];
        for (std::size_t edge = 0; edge < kCubeEdges; ++edge) {
            if ((shape.edges >> edge & 1) == 0) continue;
            std::size_t voxel = 0;
            bool here = true;
            for (std::size_t axis = 3; axis-- > 0;) {
                int const at = cube.at(axis) + kEdges[edge].offset(axis);
                here &= (at == last + 1) == (back[axis] == 1);
                voxel = voxel * side_ + static_cast<std::size_t>(at == last + 1 ? 0 : at);
            }
            if (!here) continue;
            if (out.marks.empty()) out.marks.resize(side_ * side_ * side_);
            out.marks[voxel] = static_cast<std::uint8_t>(out.marks[voxel] | 1 << kEdges[edge].axis);
        }
    }

    void count(BlockVertices& block) const {
        if (block.marks.empty()) return;
        block.row_first.resize(side_ * side_);
        for (std::size_t row = 0; row < block.row_first.size(); ++row) {
            block.row_first[row] = static_cast<std::uint32_t>(block.count);
            for (std::size_t i = row * side_; i < (row + 1) * side_; ++i) {
                block.count += BlockVertices::count_bits(block.marks[i]);
            }
        }
    }

    void write_vertices(std::size_t block, SurfaceRows& rows) const noexcept {
        BlockVertices const& own = vertices_[block];
        int const r = static_cast<int>(side_);
        std::size_t row = own.first;
        for (std::size_t voxel = 0; voxel < own.marks.size(); ++voxel) {
            for (std::size_t axis = 0; axis < 3; ++axis) {
                if ((own.marks[voxel] >> axis & 1) == 0) continue;
                int const i = static_cast<int>(voxel);
                surface_.write(block, {i % r, i / r % r, i / (r * r)}, axis, rows, row++);
            }
        }
    }

    std::int32_t vertex(std::size_t block, Cube const& cube, CubeEdge const& edge) const noexcept {
        std::array<int, 3> at{};
        std::array<int, 3> next{};
        for (std::size_t axis = 0; axis < 3; ++axis) {
            at[axis] = cube.at(axis) + edge.offset(axis);
            next[axis] = at[axis] == static_cast<int>(side_);
            if (next[axis]) at[axis] = 0;
        }
        auto const owner = static_cast<std::size_t>(around_.at(block, next[0], next[1], next[2]));
        std::size_t const voxel =
            (static_cast<std::size_t>(at[2]) * side_ + static_cast<std::size_t>(at[1])) * side_ +
            static_cast<std::size_t>(at[0]);
        return static_cast<std::int32_t>(vertices_[owner].number(side_, voxel, edge.axis));
    }

    Tensor triangles() const {
        std::vector<std::size_t> places(around_.count());
        for (std::size_t block = 0; block < places.size(); ++block) {
            for (Cube const& cube : cubes_[block]) {
                places[block] += kCubeCases[cube.negative].triangles;
            }
        }
        auto const total = static_cast<std::int64_t>(runtime::scan(places));
        Tensor out = Tensor::empty({total, 3}, Dtype::Int32);
        auto* const rows = static_cast<std::int32_t*>(out.data());
        for_blocks(around_.count(), [&](std::size_t block) {
            std::int32_t* row = rows + 3 * places[block];
            for (Cube const& cube : cubes_[block]) {
                CubeCase const& shape = kCubeCases[cube.negative];
                for (std::size_t i = 0; i < shape.triangles; ++i) {
                    for (std::uint8_t const edge : shape.corners[i]) {
                        *row++ = vertex(block, cube, kEdges[edge]);
                    }
                }
            }
        });
        return out;
    }

    Neighbourhood const& around_;
    Surface surface_;
    bool colored_;
    std::size_t side_;
    std::vector<std::vector<Cube>> cubes_;
    std::vector<BlockVertices> vertices_;
};

}  // namespace

SurfaceMesh extract_mesh(VoxelBlockGrid const& grid, double weight_threshold) {
    BlockBuffers const blocks(grid);
    Neighbourhood const around(grid.map);
    return Mesher(blocks, around, static_cast<float>(weight_threshold)).mesh();
}

}  // namespace tensorhash::geometry
