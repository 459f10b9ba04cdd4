// The public voxel functions: arguments in, voxels out.
#include "tensorhash/coords/voxels.hpp"

#include <cmath>
#include <string>

#include "coords/api/arguments.hpp"
#include "coords/voxels/voxels.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::coords {
namespace {

/// One finite number per axis.
void check_axis_numbers(std::vector<double> const& values, std::int64_t axes, char const* argument,
                        bool positive) {
    if (values.size() != static_cast<std::size_t>(axes)) {
        throw ValueError(std::string(argument) + ": expected one number or " +
                         std::to_string(axes) + ", one per axis, got " +
                         std::to_string(values.size()));
    }
    for (double const value : values) {
        if (!std::isfinite(value) || (positive && !(value > 0))) {
            throw ValueError(std::string(argument) + ": expected " +
                             (positive ? "finite numbers greater than 0" : "finite numbers") +
                             ", got " + std::to_string(value));
        }
    }
}

void check_inverse(Tensor const& inverse, std::int64_t rows) {
    if (inverse.dtype() != Dtype::Int64 || inverse.shape() != Shape{rows}) {
        throw ValueError("inverse: expected int64 (" + std::to_string(rows) +
                         ",), a voxel for each row, got " + std::string(name(inverse.dtype())) +
                         " " + to_string(inverse.shape()));
    }
}

}  // namespace

Tensor voxel_coords(Tensor const& points, std::vector<double> const& voxel_size,
                    std::vector<double> const& origin, std::optional<Tensor> const& batch,
                    Dtype dtype) {
    if (dtype != Dtype::Int32 && dtype != Dtype::Int64) {
        throw TypeError("dtype: expected int32 or int64, got " + std::string(name(dtype)));
    }
    check_points(points, "points");
    std::int64_t const axes = points.shape()[1];
    check_axis_numbers(voxel_size, axes, "voxel_size", true);
    check_axis_numbers(origin, axes, "origin", false);
    if (batch) check_batch_of(*batch, points.shape()[0], "batch");
    return coords_backend(points.device()).voxelize({points, voxel_size, origin, batch, dtype});
}

VoxelReduce voxel_reduce_from_name(std::string_view name) {
    constexpr std::string_view kNames[] = {"first", "last", "sum", "mean", "min", "max"};
    for (std::size_t i = 0; i < std::size(kNames); ++i) {
        if (name == kNames[i]) return static_cast<VoxelReduce>(i);
    }
    throw ValueError(
        "reduce: expected first, last, sum, mean, min, max, nearest_center, "
        "nearest_centroid or mode, got \"" +
        std::string(name) + "\"");
}

Tensor reduce_voxels(Tensor const& values, Tensor const& inverse, std::int64_t voxels,
                     VoxelReduce reduce) {
    if (values.rank() == 0) {
        throw ValueError("features: expected shape (N, ...), one row per point, got ()");
    }
    require_usable(values.device(), "features");
    check_inverse(inverse, values.shape()[0]);
    return coords_backend(values.device()).reduce_voxels(values, inverse, voxels, reduce);
}

// The functions that pick rows call the CPU directly: CoordsBackend has no such function.
Tensor nearest_to_centers(Tensor const& points, std::vector<double> const& voxel_size,
                          std::vector<double> const& origin, Tensor const& inverse,
                          std::int64_t voxels) {
    check_points(points, "points");
    check_axis_numbers(voxel_size, points.shape()[1], "voxel_size", true);
    check_axis_numbers(origin, points.shape()[1], "origin", false);
    check_inverse(inverse, points.shape()[0]);
    return rows_near_centers(points, voxel_size, origin, inverse, voxels);
}

Tensor nearest_to_centroids(Tensor const& points, Tensor const& inverse, std::int64_t voxels) {
    check_points(points, "points");
    check_inverse(inverse, points.shape()[0]);
    return rows_near_centroids(points, inverse, voxels);
}

Tensor mode_rows(Tensor const& labels, std::optional<std::int64_t> ignore_label,
                 Tensor const& inverse, std::int64_t voxels) {
    if (labels.rank() == 0) {
        throw ValueError("features: expected shape (N,), one label per point, got ()");
    }
    require_usable(labels.device(), "features");
    check_inverse(inverse, labels.shape()[0]);
    return rows_of_modes(labels, ignore_label, inverse, voxels);
}

}  // namespace tensorhash::coords
