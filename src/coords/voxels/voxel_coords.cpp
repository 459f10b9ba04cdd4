// Quantising: one division and one floor a coordinate, in float64 whatever the points are made of.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "coords/neighbours/points.hpp"
#include "runtime/parallel.hpp"
#include "tensorhash/coords/voxels.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::coords {
namespace {

constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

struct Outside {
    std::size_t values = 0;
    std::size_t first = kNone;  // element of the points
};

struct Axes {
    std::vector<double> const& size;
    std::vector<double> const& origin;

    double voxel(double value, std::size_t axis) const noexcept {
        return std::floor((value - origin[axis]) / size[axis]);
    }
};

void check_axes(std::vector<double> const& values, std::size_t axes, char const* argument,
                bool positive) {
    if (values.size() != axes) {
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

/// Fills the last `points.axes` columns of rows `begin` to `end`.
template <class Key>
Outside quantize(Points const& points, Axes const& axes, Key* keys, std::size_t columns,
                 std::size_t begin, std::size_t end) {
    // Both bounds are powers of two, which float64 holds.
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

[[noreturn]] void fail_outside(Outside const& outside, Points const& points, Axes const& axes,
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
Tensor quantized(Points const& points, Axes const& axes, std::optional<Tensor> const& batch) {
    std::size_t const columns = points.axes + (batch ? 1 : 0);
    Tensor out =
        Tensor::empty({static_cast<std::int64_t>(points.rows), static_cast<std::int64_t>(columns)},
                      dtype_of<Key>);
    auto* const keys = static_cast<Key*>(out.data());
    if (batch) fill_batch(keys, columns, check_batch_of(*batch, points.rows, "batch"));
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

Tensor voxel_coords(Tensor const& points, std::vector<double> const& voxel_size,
                    std::vector<double> const& origin, std::optional<Tensor> const& batch,
                    Dtype dtype) {
    if (dtype != Dtype::Int32 && dtype != Dtype::Int64) {
        throw TypeError("dtype: expected int32 or int64, got " + std::string(name(dtype)));
    }
    Points const rows = check_points(points, "points");
    check_axes(voxel_size, rows.axes, "voxel_size", true);
    check_axes(origin, rows.axes, "origin", false);
    Axes const axes{voxel_size, origin};
    return dtype == Dtype::Int32 ? quantized<std::int32_t>(rows, axes, batch)
                                 : quantized<std::int64_t>(rows, axes, batch);
}

}  // namespace tensorhash::coords
