// Points where the surface crosses an edge between two voxels. A first pass lists the crossings of
// each block, a second one writes them in the order of blocks, voxels and axes.
#include <vector>

#include "geometry/blocks.hpp"
#include "geometry/surface.hpp"
#include "runtime/scan.hpp"

namespace tensorhash::geometry {
namespace {

struct Crossing {
    std::uint32_t voxel;
    std::uint32_t axis;
};

class CrossingFinder {
public:
    CrossingFinder(BlockBuffers const& blocks, Neighbourhood const& around, float threshold)
        : blocks_(blocks), around_(around), threshold_(threshold),
          side_(static_cast<std::size_t>(blocks.resolution)) {}

    void list(std::size_t block, std::vector<Crossing>& out) const {
        std::size_t const first = around_.index(block) * blocks_.voxels;
        std::array<std::size_t, 3> const step{1, side_, side_ * side_};
        std::array<std::size_t, 3> const beyond{beyond_of(block, 0), beyond_of(block, 1),
                                                beyond_of(block, 2)};
        for (std::size_t i = 0; i < blocks_.voxels; ++i) {
            if (!(blocks_.weight[first + i] > threshold_)) continue;
            float const distance = blocks_.distance(first + i);
            std::array<std::size_t, 3> const at{i % side_, i / side_ % side_, i / step[2]};
            for (std::size_t axis = 0; axis < 3; ++axis) {
                bool const inside = at[axis] + 1 < side_;
                if (!inside && beyond[axis] == kNoVoxel) continue;
                std::size_t const other =
                    inside ? first + i + step[axis] : beyond[axis] + i - (side_ - 1) * step[axis];
                if (blocks_.distance(other) * distance < 0 && blocks_.weight[other] > threshold_) {
                    out.push_back(
                        {static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(axis)});
                }
            }
        }
    }

private:
    static constexpr std::size_t kNoVoxel = ~std::size_t{0};

    /// The first voxel of the next block along an axis.
    std::size_t beyond_of(std::size_t block, int axis) const noexcept {
        std::int32_t const next = around_.at(block, axis == 0, axis == 1, axis == 2);
        return next == Neighbourhood::kNoBlock
                   ? kNoVoxel
                   : around_.index(static_cast<std::size_t>(next)) * blocks_.voxels;
    }

    BlockBuffers const& blocks_;
    Neighbourhood const& around_;
    float threshold_;
    std::size_t side_;
};

}  // namespace

SurfacePoints extract_points(VoxelBlockGrid const& grid, double weight_threshold) {
    BlockBuffers const blocks(grid);
    Neighbourhood const around(grid.map);
    CrossingFinder const finder(blocks, around, static_cast<float>(weight_threshold));
    std::vector<std::vector<Crossing>> found(around.count());
    for_blocks(around.count(), [&](std::size_t block) { finder.list(block, found[block]); });

    std::vector<std::size_t> places(around.count());
    for (std::size_t block = 0; block < places.size(); ++block) places[block] = found[block].size();
    SurfaceRows rows(runtime::scan(places), static_cast<bool>(blocks.color));
    Surface const surface(blocks, around);
    int const r = blocks.resolution;
    for_blocks(around.count(), [&](std::size_t block) {
        std::size_t row = places[block];
        for (Crossing const& crossing : found[block]) {
            int const i = static_cast<int>(crossing.voxel);
            surface.write(block, {i % r, i / r % r, i / (r * r)}, crossing.axis, rows, row++);
        }
    });
    return std::move(rows.out);
}

}  // namespace tensorhash::geometry
