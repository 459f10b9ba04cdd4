// The voxel of each point: one division and one floor per coordinate, in float64 for every dtype.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "backend/points.hpp"
#include "coords/neighbours/points.hpp"
#include "coords/voxels/voxels.hpp"
#include "runtime/parallel.hpp"

namespace tensorhash::coords {
namespace {

using backend::OutsideVoxels;

struct VoxelAxes {
    std::vector<double> const& size;
    std::vector<double> const& origin;

    double voxel(double value, std::size_t axis) const noexcept {
        return std::floor((value - origin[axis]) / size[axis]);
    }
};

/// Fills the last `points.axes` columns of rows `begin` to `end`.
template <class Key>
OutsideVoxels quantize(Points const& points, VoxelAxes const& axes, Key* keys, std::size_t columns,
                       std::size_t begin, std::size_t end) {
    // Both bounds are powers of two, which float64 represents exactly.
    constexpr double kLow = static_cast<double>(std::numeric_limits<Key>::min());
    OutsideVoxels outside;
    for (std::size_t row = begin; row < end; ++row) {
        Key* const key = keys + row * columns + (columns - points.axes);
        for (std::size_t axis = 0; axis < points.axes; ++axis) {
            double const voxel = axes.voxel(points.row(row)[axis], axis);
            if (voxel >= kLow && voxel < -kLow) {
                key[axis] = static_cast<Key>(voxel);
                continue;
            }
            ++outside.numbers;
            outside.first = std::min<std::uint64_t>(outside.first, row * points.axes + axis);
        }
    }
    return outside;
}

template <class Key>
void fill_batch(Key* keys, std::size_t columns, Tensor const& batch) {
    auto const numbers = batch.as<std::int64_t>();
    for (std::size_t row = 0; row < numbers.size(); ++row) {
        keys[row * columns] = static_cast<Key>(numbers[row]);
        if (keys[row * columns] != numbers[row]) {
            backend::fail_voxel_batch(numbers[row], row, dtype_of<Key>);
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
    std::vector<OutsideVoxels> found(std::max<std::size_t>(1, chunks.count));
    runtime::for_chunks(chunks, [&](std::size_t chunk, std::size_t begin, std::size_t end) {
        found[chunk] = quantize(points, axes, keys, columns, begin, end);
    });
    OutsideVoxels all;
    for (OutsideVoxels const& one : found) {
        all.numbers += one.numbers;
        all.first = std::min(all.first, one.first);
    }
    if (all.numbers > 0) {
        double const value = points.data()[all.first];
        backend::fail_voxels(all, points.axes, value, axes.voxel(value, all.first % points.axes),
                             dtype_of<Key>);
    }
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
