// Adds LiDAR points to the voxels of a grid. Observations are listed in order, then grouped by
// block: one thread applies all observations of a block, in order.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "coords/api/arguments.hpp"
#include "coords/neighbours/points.hpp"
#include "coords/rows/row_groups.hpp"
#include "geometry/blocks.hpp"
#include "geometry/images.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::geometry {
namespace {

/// One voxel that the ray of a point passes.
struct Observation {
    std::uint32_t voxel;  // within its block
    std::uint32_t point;
    float distance;
};

/// Observations in order, and the key of the block of each.
struct Observations {
    std::vector<Observation> list;
    std::vector<std::int32_t> keys;
    bool outside = false;
};

struct RaySampler {
    double const* origin;
    double voxel_size;
    double truncation;  // in voxels
    std::int64_t resolution;

    /// Visits a ray once per voxel length, from `truncation` before the point to as much behind.
    /// Each position stands for the nearest voxel.
    void sample(double const* point, std::uint32_t row, Observations& out) const {
        std::array<double, 3> direction{};
        double const length = ray(point, direction);
        std::array<double, 3> last{};
        auto const steps = static_cast<std::int64_t>(2 * truncation);
        bool has_last = false;
        for (std::int64_t step = 0; step <= steps; ++step) {
            double const t = length + (static_cast<double>(step) - truncation) * voxel_size;
            if (t < 0) continue;  // behind the sensor
            std::array<double, 3> voxel{};
            for (std::size_t axis = 0; axis < 3; ++axis) {
                voxel[axis] = std::floor((origin[axis] + t * direction[axis]) / voxel_size + 0.5);
            }
            if (has_last && voxel == last) continue;
            has_last = true;
            last = voxel;
            add(voxel, direction, length, row, out);
        }
    }

    /// The length of the ray and its direction.
    double ray(double const* point, std::array<double, 3>& direction) const noexcept {
        double squared = 0;
        for (std::size_t axis = 0; axis < 3; ++axis) {
            direction[axis] = point[axis] - origin[axis];
            squared += direction[axis] * direction[axis];
        }
        double const length = std::sqrt(squared);
        for (double& part : direction) part /= length;
        return length;
    }

private:
    void add(std::array<double, 3> const& voxel, std::array<double, 3> const& direction,
             double length, std::uint32_t row, Observations& out) const {
        double along = 0;
        std::array<std::int32_t, 3> key{};
        std::array<std::int64_t, 3> inside{};
        for (std::size_t axis = 0; axis < 3; ++axis) {
            double const block = std::floor(voxel[axis] / static_cast<double>(resolution));
            if (!(block >= -2147483648.0 && block < 2147483648.0)) {
                out.outside = true;
                return;
            }
            key[axis] = static_cast<std::int32_t>(block);
            inside[axis] = static_cast<std::int64_t>(voxel[axis]) - key[axis] * resolution;
            along += (voxel[axis] * voxel_size - origin[axis]) * direction[axis];
        }
        double const sdf = (length - along) / (truncation * voxel_size);
        if (sdf < -1) return;
        auto const place = (inside[2] * resolution + inside[1]) * resolution + inside[0];
        out.list.push_back(
            {static_cast<std::uint32_t>(place), row, static_cast<float>(std::min(sdf, 1.0))});
        out.keys.insert(out.keys.end(), key.begin(), key.end());
    }
};

void append(Observations& all, Observations const& part) {
    all.list.insert(all.list.end(), part.list.begin(), part.list.end());
    all.keys.insert(all.keys.end(), part.keys.begin(), part.keys.end());
    all.outside |= part.outside;
}

Observations observe(RaySampler const& sampler, coords::Points const& points) {
    auto const chunks = runtime::cut(points.rows, 1024);
    std::vector<Observations> found(std::max<std::size_t>(1, chunks.count));
    runtime::for_chunks(chunks, [&](std::size_t chunk, std::size_t begin, std::size_t end) {
        for (std::size_t row = begin; row < end; ++row) {
            sampler.sample(points.row(row), static_cast<std::uint32_t>(row), found[chunk]);
        }
    });
    Observations all;
    for (Observations const& part : found) append(all, part);
    if (all.outside) fail_blocks_outside();
    return all;
}

coords::Points check_scan(Scan const& scan) {
    coords::check_points(scan.points, "points");
    if (scan.points.shape()[1] != 3) {
        throw ValueError("points: expected shape (N, 3), got " + to_string(scan.points.shape()));
    }
    for (double const x : scan.origin) {
        if (!std::isfinite(x)) {
            throw ValueError("origin: expected finite numbers, got " + std::to_string(x));
        }
    }
    if (scan.colors && scan.colors->shape() != scan.points.shape()) {
        throw ValueError("colors: expected shape " + to_string(scan.points.shape()) +
                         ", as points, got " + to_string(scan.colors->shape()));
    }
    coords::Points points = coords::to_points(scan.points, "points");
    for (std::size_t row = 0; row < points.rows; ++row) {
        if (std::equal(scan.origin.begin(), scan.origin.end(), points.row(row))) {
            throw ValueError("points: expected points away from the origin of the scan, got row " +
                             std::to_string(row) + " equal to it; drop such rows");
        }
    }
    return points;
}

void apply(BlockBuffers const& blocks, std::size_t voxel, float distance, float const* color) {
    float const weight = blocks.weight[voxel];
    float const share = 1.0f / (weight + 1);
    blocks.distances[voxel] = (weight * blocks.distances[voxel] + distance) * share;
    if (color != nullptr) {
        for (std::size_t c = 0; c < 3; ++c) {
            blocks.color.set(3 * voxel + c,
                             (weight * blocks.color[3 * voxel + c] + color[c]) * share);
        }
    }
    blocks.weight.set(voxel, weight + 1);
}

/// The blocks of a scan, and the place of each observation's block among them, or -1.
struct ScanBlocks {
    Tensor keys;
    Tensor places;
};

/// With `only`, the blocks are these.
ScanBlocks blocks_of(Tensor const& keys, std::optional<Tensor> const& only) {
    HashSet blocks(Capacity{0}, {Dtype::Int32, {3}});
    blocks.insert(only ? *only : keys);
    return {blocks.keys(), blocks.find(keys).indices};
}

}  // namespace

void integrate(VoxelBlockGrid const& grid, Scan const& scan, double truncation,
               std::optional<Tensor> const& blocks) {
    static_cast<void>(BlockBuffers(grid));  // checks the columns before anything changes
    check_range({1, 1, truncation, 0});
    std::optional<Tensor> only;
    if (blocks) only = check_blocks(*blocks);
    coords::Points const points = check_scan(scan);
    std::vector<float> colors;
    if (scan.colors) colors = to_colors(*scan.colors, "colors");
    RaySampler const sampler{scan.origin.data(), static_cast<float>(grid.scale.voxel_size),
                             truncation, grid.scale.resolution};
    Observations const seen = observe(sampler, points);
    auto const count = static_cast<std::int64_t>(seen.list.size());
    ScanBlocks const touched = blocks_of(Tensor::from(seen.keys, {count, 3}), only);

    // Group 0 holds what is left out; block i is group i + 1.
    std::vector<std::int32_t> group(seen.list.size());
    auto const places = touched.places.as<std::int32_t>();
    std::transform(places.begin(), places.end(), group.begin(), [](auto i) { return i + 1; });
    auto const groups = coords::group_rows(std::span<std::int32_t const>(group),
                                           static_cast<std::size_t>(touched.keys.shape()[0]) + 1);
    // The last step that takes much memory, so that it fails before anything changes.
    Located const located = grid.map.activate(touched.keys);
    auto const indices = located.indices.as<std::int32_t>();
    BlockBuffers const buffers(grid);
    bool const colored = scan.colors.has_value() && static_cast<bool>(buffers.color);
    for_blocks(groups.count() - 1, [&](std::size_t block) {
        std::size_t const first = static_cast<std::size_t>(indices[block]) * buffers.voxels;
        for (std::uint32_t const row : groups.of(block + 1)) {
            Observation const& one = seen.list[row];
            apply(buffers, first + one.voxel, one.distance,
                  colored ? colors.data() + 3 * std::size_t{one.point} : nullptr);
        }
    });
}

}  // namespace tensorhash::geometry
