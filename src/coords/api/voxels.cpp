// The public voxel functions: arguments in, voxels out.
#include "tensorhash/coords/voxels.hpp"

#include <cmath>
#include <string>
#include <utility>

#include "coords/api/arguments.hpp"
#include "map/results.hpp"
#include "tensorhash/error.hpp"
#include "tensorhash/unique.hpp"

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

/// One integer or bool per row.
void require_labels(Tensor const& labels) {
    if (labels.size() != labels.shape()[0]) {
        throw ValueError("features: expected one label per point to reduce by mode, got shape " +
                         to_string(labels.shape()));
    }
    if (labels.dtype() != Dtype::Bool && !is_integer(labels.dtype())) {
        throw TypeError("features: expected integer labels to reduce by mode, got " +
                        std::string(name(labels.dtype())));
    }
}

/// The arrays of a function that picks rows, on the device of the rows.
struct PickArrays {
    PickArrays(Tensor const& given, Tensor own, Tensor const& of_rows)
        : device(device_of(given, "features")), rows(std::move(own)) {
        check_inverse(of_rows, given.shape()[0]);
        inverse = take_array(of_rows, "inverse", device);
    }
    backend::CoordsBackend const& backend() const { return coords_backend(device); }
    Tensor deliver(Tensor picked) const {
        mark_read(rows);
        mark_read(inverse);
        return map::deliver(std::move(picked), device);
    }

    Device device;
    Tensor rows;
    Tensor inverse;
};

}  // namespace

Tensor voxel_coords(Tensor const& points, std::vector<double> const& voxel_size,
                    std::vector<double> const& origin, std::optional<Tensor> const& batch,
                    Dtype dtype) {
    if (dtype != Dtype::Int32 && dtype != Dtype::Int64) {
        throw TypeError("dtype: expected int32 or int64, got " + std::string(name(dtype)));
    }
    Device const device = device_of(points, "points");
    Tensor const own = take_points(points, "points", device);
    std::int64_t const axes = points.shape()[1];
    check_axis_numbers(voxel_size, axes, "voxel_size", true);
    check_axis_numbers(origin, axes, "origin", false);
    std::optional<Tensor> const of_rows = take_batch(batch, points.shape()[0], "batch", device);
    Tensor voxels = coords_backend(device).voxelize({own, voxel_size, origin, of_rows, dtype});
    mark_read(own);
    if (of_rows) mark_read(*of_rows);
    return map::deliver(std::move(voxels), device);
}

Tensor voxel_means(Tensor const& points, std::vector<double> const& voxel_size,
                   std::vector<double> const& origin) {
    Device const device = device_of(points, "points");
    Tensor const own = take_points(points, "points", device);
    check_axis_numbers(voxel_size, points.shape()[1], "voxel_size", true);
    check_axis_numbers(origin, points.shape()[1], "origin", false);
    std::optional<Tensor> means =
        coords_backend(device).voxel_means({own, voxel_size, origin, {}, Dtype::Int64});
    mark_read(own);
    if (means) return map::deliver(std::move(*means), device);
    Unique const found = unique(voxel_coords(own, voxel_size, origin, {}, Dtype::Int64),
                                {.index = false, .inverse = true, .counts = false});
    return reduce_voxels(own, found.inverse, found.rows.shape()[0], VoxelReduce::Mean);
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
    Device const device = device_of(values, "features");
    check_inverse(inverse, values.shape()[0]);
    Tensor const own = take_array(values, "features", device);
    Tensor const voxel_of = take_array(inverse, "inverse", device);
    Tensor reduced = coords_backend(device).reduce_voxels(own, voxel_of, voxels, reduce);
    mark_read(own);
    mark_read(voxel_of);
    return map::deliver(std::move(reduced), device);
}

Tensor nearest_to_centers(Tensor const& points, std::vector<double> const& voxel_size,
                          std::vector<double> const& origin, Tensor const& inverse,
                          std::int64_t voxels) {
    PickArrays const arrays(points, take_points(points, "points", points.device()), inverse);
    check_axis_numbers(voxel_size, points.shape()[1], "voxel_size", true);
    check_axis_numbers(origin, points.shape()[1], "origin", false);
    return arrays.deliver(arrays.backend().rows_near_centers(
        {arrays.rows, voxel_size, origin, {}, Dtype::Int64}, arrays.inverse, voxels));
}

Tensor nearest_to_centroids(Tensor const& points, Tensor const& inverse, std::int64_t voxels) {
    PickArrays const arrays(points, take_points(points, "points", points.device()), inverse);
    return arrays.deliver(
        arrays.backend().rows_near_centroids(arrays.rows, arrays.inverse, voxels));
}

Tensor mode_rows(Tensor const& labels, std::optional<std::int64_t> ignore_label,
                 Tensor const& inverse, std::int64_t voxels) {
    if (labels.rank() == 0) {
        throw ValueError("features: expected shape (N,), one label per point, got ()");
    }
    PickArrays const arrays(labels, take_array(labels, "features", labels.device()), inverse);
    require_labels(labels);
    return arrays.deliver(
        arrays.backend().rows_of_modes(arrays.rows, ignore_label, arrays.inverse, voxels));
}

}  // namespace tensorhash::coords
