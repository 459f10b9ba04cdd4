// The voxel of each point: one division and one floor per coordinate, in float64 for every dtype.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "coords/neighbours/points.hpp"
#include "coords/voxels/voxels.hpp"
#include "runtime/parallel.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::coords {
namespace {

/// Coordinates outside the dtype of the voxels.
struct Outside {
    std::size_t values = 0;
    std::size_t first = kNoElement;  // the first of them, an element of the points
};

struct VoxelAxes {
    std::vector<double> const& size;
    std::vector<double> const& origin;

    double voxel(double value, std::size_t axis) const noexcept {
        return std::floor((value - origin[axis]) / size[axis]);
    }
};

/// Fills the last `points.axes` columns of rows `begin` to `end`.
template <class Key>
Outside quantize(Points const& points, VoxelAxes const& axes, Key* keys, std::size_t columns,
                 std::size_t begin, std::size_t end) {
    // Both bounds are powers of two, which float64 represents exactly.
    constexpr double kLow = static_cast<double>(std::numeric_limits<Key>::min());
    Outside outside;
    for (std::size_t row = begin; row < end; ++row) {
        Key* const key = keys + row * columns + (columns - points.axes);
        for (std::size_t axis = 0; axis < points.axes; ++axis) {
            double const voxel = axes.voxel(points.row(row)[axis], axis);
            if (voxel >= kLow && voxel < -kLow) {
                key[axis] = static_cast<Key>(voxel);
                continue;
            }
            ++outside.values;
            outside.first = std::min(outside.first, row * points.axes + axis);
        }
    }
    return outside;
}

[[noreturn]] void fail_outside(Outside const& outside, Points const& points, VoxelAxes const& axes,
                               Dtype dtype) {
    std::size_t const axis = outside.first % points.axes;
    double const value = points.data()[outside.first];
    char text[200];
    std::snprintf(text, sizeof text, "row %zu, axis %zu: %.17g is voxel %.6g",
                  outside.first / points.axes, axis, value, axes.voxel(value, axis));
    throw ValueError("points: expected voxels that fit " + std::string(name(dtype)) + ", got " +
                     std::to_string(outside.values) + " coordinates outside (the first in " + text +
                     "); use a larger voxel_size, an origin near the points" +
                     (dtype == Dtype::Int32 ? " or the dtype int64" : ""));
}

template <class Key>
void fill_batch(Key* keys, std::size_t columns, Tensor const& batch) {
    auto const numbers = batch.as<std::int64_t>();
    for (std::size_t row = 0; row < numbers.size(); ++row) {
        keys[row * columns] = static_cast<Key>(numbers[row]);
        if (keys[row * columns] != numbers[row]) {
            throw ValueError("batch: expected integers that fit " +
                             std::string(name(dtype_of<Key>)) + ", got " +
                             std::to_string(numbers[row]) + " in row " + std::to_string(row));
        }
    }
}

template <class Key>
Tensor quantized(Points const& points, VoxelAxes const& axes, std::optional<Tensor> const& batch) {
    std::size_t const columns = points.axes + (batch ? 1 : 0);
    Tensor out =
        Tensor::empty({static_cast<std::int64_t>(points.rows), static_cast<std::int64_t>(columns)},
                      dtype_of<Key>);
    auto* const keys = static_cast<Key*>(out.data());
    if (batch) fill_batch(keys, columns, to_batch(*batch, "batch"));
    auto const chunks = runtime::cut(points.rows, runtime::kGrain);
    std::vector<Outside> found(std::max<std::size_t>(1, chunks.count));
    runtime::for_chunks(chunks, [&](std::size_t chunk, std::size_t begin, std::size_t end) {
        found[chunk] = quantize(points, axes, keys, columns, begin, end);
    });
    Outside all;
    for (Outside const& one : found) {
        all.values += one.values;
        all.first = std::min(all.first, one.first);
    }
    if (all.values > 0) fail_outside(all, points, axes, dtype_of<Key>);
    return out;
}

}  // namespace

Tensor quantize_points(backend::VoxelizeRequest const& request) {
    Points const points = to_points(request.points, "points");
    VoxelAxes const axes{request.voxel_size, request.origin};
    return request.dtype == Dtype::Int32 ? quantized<std::int32_t>(points, axes, request.batch)
                                         : quantized<std::int64_t>(points, axes, request.batch);
}

}  // namespace tensorhash::coords
