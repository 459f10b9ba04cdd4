// The rules and texts of points.hpp.
#include "backend/points.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include "tensorhash/error.hpp"

namespace tensorhash::backend {

void fail_numbers(BadNumbers const& bad, std::size_t axes, std::string_view argument) {
    std::string const where = " (the first in row " + std::to_string(bad.first / axes) +
                              ", column " + std::to_string(bad.first % axes) + ")";
    if (bad.inexact > 0) {
        throw ValueError(std::string(argument) +
                         ": expected integers within 2^53, which float64 holds exactly, got " +
                         std::to_string(bad.inexact) + " beyond" + where +
                         "; subtract an origin first");
    }
    throw ValueError(std::string(argument) + ": expected finite numbers, got " +
                     std::to_string(bad.nan) + " NaN and " + std::to_string(bad.infinite) +
                     " infinite" + where + "; drop those rows");
}

void fail_batch_number(std::string_view argument, std::uint64_t batch, std::size_t row) {
    throw ValueError(std::string(argument) + ": expected integers that fit int64, got " +
                     std::to_string(batch) + " in row " + std::to_string(row));
}

void fail_voxels(OutsideVoxels const& outside, std::size_t axes, double value, double voxel,
                 Dtype dtype) {
    char text[200];
    std::snprintf(text, sizeof text, "row %zu, axis %zu: %.17g is voxel %.6g",
                  static_cast<std::size_t>(outside.first) / axes,
                  static_cast<std::size_t>(outside.first) % axes, value, voxel);
    throw ValueError("points: expected voxels that fit " + std::string(name(dtype)) + ", got " +
                     std::to_string(outside.numbers) + " coordinates outside (the first in " +
                     text + "); use a larger voxel_size, an origin near the points" +
                     (dtype == Dtype::Int32 ? " or the dtype int64" : ""));
}

void fail_voxel_batch(std::int64_t batch, std::size_t row, Dtype dtype) {
    throw ValueError("batch: expected integers that fit " + std::string(name(dtype)) + ", got " +
                     std::to_string(batch) + " in row " + std::to_string(row));
}

Dtype reduced_dtype(Dtype values, coords::VoxelReduce reduce) noexcept {
    bool const is_mean = reduce == coords::VoxelReduce::Mean;
    if (!is_mean && reduce != coords::VoxelReduce::Sum) {
        return values;
    }
    switch (values) {
        case Dtype::Float16:
        case Dtype::BFloat16:
        case Dtype::Float32:
        case Dtype::Float64:
            return values;
        case Dtype::UInt8:
        case Dtype::UInt16:
        case Dtype::UInt32:
        case Dtype::UInt64:
            return is_mean ? Dtype::Float64 : Dtype::UInt64;
        default:
            return is_mean ? Dtype::Float64 : Dtype::Int64;
    }
}

void fail_voxel_number(std::int64_t voxel, std::int64_t voxels) {
    throw ValueError("inverse: expected 0 to " + std::to_string(voxels - 1) + ", got " +
                     std::to_string(voxel));
}

void fail_empty_voxel(std::uint64_t voxel) {
    throw ValueError("inverse: expected every voxel to have a row, got none for " +
                     std::to_string(voxel));
}

void fail_voxel_sums(std::uint64_t count, Dtype dtype) {
    throw ValueError("features: expected sums that fit " + std::string(name(dtype)) + ", got " +
                     std::to_string(count) +
                     " outside; cast the features to float64 or reduce to the mean");
}

void fail_far(std::string_view argument, std::uint64_t count) {
    throw ValueError(std::string(argument) + ": expected numbers within 1e150, got " +
                     std::to_string(count) + " beyond");
}

double search_scale(double largest) noexcept {
    return largest > 0 ? std::ldexp(1.0, std::min(1000, 500 - std::ilogb(largest))) : 1;
}

double scaled_radius(double radius, double scale) noexcept {
    constexpr double kBeyond = 0x1p+520;  // above every distance between scaled points
    return std::min(radius * scale, kBeyond);
}

}  // namespace tensorhash::backend
