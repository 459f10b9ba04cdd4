// Adds depth images to the voxels of a grid. The voxels of a row are projected together, so that
// the compiler can use vector instructions; pixels are fetched one by one.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "geometry/blocks.hpp"
#include "geometry/camera.hpp"
#include "geometry/images.hpp"
#include "tensorhash/error.hpp"
#include "tensorhash/unique.hpp"

namespace tensorhash::geometry {
namespace {

constexpr std::size_t kLanes = 16;  // voxels that are handled together
using Lanes = std::array<float, kLanes>;

constexpr std::int32_t kOutside = -1;

/// For each column and each row of the depth image, that of the colour image, or kOutside. A pixel
/// (u, v) shows the colour of column u and row v, because neither camera is turned.
struct ColorLookup {
    ColorLookup(Image const& depth, Image const& color, Pinhole const& from, Pinhole const& to)
        : columns(depth.width), rows(depth.height) {
        for (std::size_t u = 0; u < depth.width; ++u) {
            float const x = to.project(from.unproject({static_cast<float>(u), 0})).u;
            columns[u] = color.holds(x, 0) ? static_cast<std::int32_t>(std::round(x)) : kOutside;
        }
        for (std::size_t v = 0; v < depth.height; ++v) {
            float const y = to.project(from.unproject({0, static_cast<float>(v)})).v;
            rows[v] = color.holds(0, y) ? static_cast<std::int32_t>(std::round(y)) : kOutside;
        }
    }

    std::vector<std::int32_t> columns;
    std::vector<std::int32_t> rows;
};

/// What a frame shows, and how voxels see it.
struct Observer {
    Image depth;
    Pinhole pinhole;
    Rigid pose;
    float truncation;
    float max;
    std::optional<Image> color{};
    std::optional<ColorLookup> lookup{};
};

/// Some voxels of one row: where they lie in the camera's space and which pixel shows them.
struct Projected {
    Lanes depth;     // of the voxel
    Lanes measured;  // of the pixel; 0 if there is none
    std::array<std::uint32_t, kLanes> pixel;
};

/// `x` are positions along the row. The loops have no branches.
void project(Observer const& frame, Lanes const& x, float y, float z, Lanes& u, Lanes& v,
             Lanes& depth) noexcept {
    auto const& m = frame.pose.rows;
    for (std::size_t i = 0; i < kLanes; ++i) {
        float const cx = x[i] * m[0][0] + y * m[0][1] + z * m[0][2] + m[0][3];
        float const cy = x[i] * m[1][0] + y * m[1][1] + z * m[1][2] + m[1][3];
        float const cz = x[i] * m[2][0] + y * m[2][1] + z * m[2][2] + m[2][3];
        float const inverse = 1.0f / cz;
        u[i] = frame.pinhole.fx * cx * inverse + frame.pinhole.cx;
        v[i] = frame.pinhole.fy * cy * inverse + frame.pinhole.cy;
        depth[i] = cz;
    }
}

/// Returns whether any voxel has a measurement.
bool fetch(Observer const& frame, Lanes const& u, Lanes const& v, std::size_t count,
           Projected& out) noexcept {
    bool any = false;
    for (std::size_t i = 0; i < count; ++i) {
        out.measured[i] = 0;
        if (!frame.depth.holds(u[i], v[i])) continue;
        auto const column = static_cast<std::uint32_t>(u[i]);
        auto const row = static_cast<std::uint32_t>(v[i]);
        out.pixel[i] = row * static_cast<std::uint32_t>(frame.depth.width) + column;
        float const measured = frame.depth.numbers[out.pixel[i]];
        out.measured[i] = measured > frame.max ? 0 : measured;
        any |= out.measured[i] > 0;
    }
    return any;
}

/// The signed distances divided by the truncation, and which voxels are observed.
void distances(Observer const& frame, Projected const& seen, Lanes& distance,
               std::array<bool, kLanes>& observed) noexcept {
    for (std::size_t i = 0; i < kLanes; ++i) {
        float const sdf = seen.measured[i] - seen.depth[i];
        bool const is_seen = (seen.measured[i] > 0) & (seen.depth[i] > 0);
        observed[i] = is_seen & (sdf >= -frame.truncation);
        distance[i] = std::min(sdf, frame.truncation) / frame.truncation;
    }
}

class FrameIntegrator {
public:
    FrameIntegrator(BlockBuffers const& blocks, Observer const& frame)
        : blocks_(blocks), frame_(frame), side_(static_cast<std::size_t>(blocks.resolution)) {}

    void block(std::size_t index) const noexcept {
        std::int32_t const* const key = blocks_.key(index);
        auto const place = [&](int axis, std::size_t i) {
            std::int64_t const first = std::int64_t{key[axis]} * blocks_.resolution;
            return static_cast<float>(first + static_cast<std::int64_t>(i)) * blocks_.voxel_size;
        };
        for (std::size_t first = 0; first < side_; first += kLanes) {
            Lanes x{};
            for (std::size_t i = 0; i < kLanes; ++i) x[i] = place(0, first + i);
            std::size_t const count = std::min(kLanes, side_ - first);
            for (std::size_t z = 0; z < side_; ++z) {
                for (std::size_t y = 0; y < side_; ++y) {
                    std::size_t const row = index * blocks_.voxels + (z * side_ + y) * side_;
                    voxels(x, place(1, y), place(2, z), row + first, count);
                }
            }
        }
    }

private:
    void voxels(Lanes const& x, float y, float z, std::size_t voxel,
                std::size_t count) const noexcept {
        Lanes u;
        Lanes v;
        Projected seen;
        seen.measured = {};
        project(frame_, x, y, z, u, v, seen.depth);
        if (!fetch(frame_, u, v, count, seen)) return;
        Lanes distance;
        std::array<bool, kLanes> observed;
        distances(frame_, seen, distance, observed);
        for (std::size_t i = 0; i < count; ++i) {
            if (observed[i]) observe(voxel + i, distance[i], seen.pixel[i]);
        }
    }

    void observe(std::size_t voxel, float distance, std::uint32_t pixel) const noexcept {
        float const weight = blocks_.weight[voxel];
        float const share = 1.0f / (weight + 1);
        blocks_.distances[voxel] = (weight * blocks_.distances[voxel] + distance) * share;
        if (frame_.lookup) add_color(voxel, pixel, weight, share);
        blocks_.weight.set(voxel, weight + 1);
    }

    void add_color(std::size_t voxel, std::uint32_t pixel, float weight,
                   float share) const noexcept {
        std::int32_t const column = frame_.lookup->columns[pixel % frame_.depth.width];
        std::int32_t const row = frame_.lookup->rows[pixel / frame_.depth.width];
        if (column == kOutside || row == kOutside) return;
        std::size_t const at =
            static_cast<std::size_t>(row) * frame_.color->width + static_cast<std::size_t>(column);
        for (std::size_t c = 0; c < 3; ++c) {
            float const before = weight * blocks_.color[3 * voxel + c];
            blocks_.color.set(3 * voxel + c, (before + frame_.color->numbers[3 * at + c]) * share);
        }
    }

    BlockBuffers const& blocks_;
    Observer const& frame_;
    std::size_t side_;
};

Observer to_observer(VoxelBlockGrid const& grid, Frame const& frame, DepthRange const& range) {
    Observer out{
        to_depth(frame.depth, range.scale),
        to_pinhole(frame.camera.intrinsic, frame.color_intrinsic ? "depth_intrinsic" : "intrinsic"),
        to_rigid(frame.camera.extrinsic, "extrinsic"),
        static_cast<float>(grid.scale.voxel_size) * static_cast<float>(range.truncation),
        static_cast<float>(range.max)};
    if (out.depth.width * out.depth.height >= std::size_t{1} << 32) {
        throw ValueError("depth: expected fewer than 2^32 pixels, got shape " +
                         to_string(frame.depth.shape()));
    }
    if (!frame.color) return out;
    out.color = to_color_image(*frame.color);
    Pinhole const pinhole =
        frame.color_intrinsic ? to_pinhole(*frame.color_intrinsic, "color_intrinsic") : out.pinhole;
    if (grid.color >= 0) out.lookup.emplace(out.depth, *out.color, out.pinhole, pinhole);
    return out;
}

}  // namespace

void integrate(VoxelBlockGrid const& grid, Tensor const& blocks, Frame const& frame,
               DepthRange const& range) {
    Tensor const keys = check_blocks(blocks);
    check_range(range);
    static_cast<void>(BlockBuffers(grid));  // checks the columns before anything changes
    Observer const observer = to_observer(grid, frame, range);
    Tensor const distinct = unique(keys, {false, false, false}).rows;
    // The last step that takes much memory, so that it fails before anything changes.
    Located const located = grid.map.activate(distinct);
    auto const indices = located.indices.as<std::int32_t>();
    BlockBuffers const buffers(grid);
    FrameIntegrator const integrator(buffers, observer);
    for_blocks(indices.size(), [&](std::size_t block) {
        integrator.block(static_cast<std::size_t>(indices[block]));
    });
}

}  // namespace tensorhash::geometry
