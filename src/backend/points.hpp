// Points and voxels: the rules and the messages that are the same on every device. The functions
// that fail are only called after a check has failed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

#include "tensorhash/coords/types.hpp"
#include "tensorhash/dtype.hpp"
#include "tensorhash/export.hpp"

namespace tensorhash::backend {

/// No element of an array.
inline constexpr std::uint64_t kNoElement = std::numeric_limits<std::uint64_t>::max();

/// The numbers of an array that float64 cannot hold as they are.
struct BadNumbers {
    std::uint64_t nan = 0;
    std::uint64_t infinite = 0;
    std::uint64_t inexact = 0;         // integers beyond 2^53
    std::uint64_t first = kNoElement;  // the first element that is one of them

    bool clean() const noexcept { return first == kNoElement; }
};
[[noreturn]] TH_API void fail_numbers(BadNumbers const& bad, std::size_t axes,
                                      std::string_view argument);
/// A batch of uint64 does not fit int64.
[[noreturn]] TH_API void fail_batch_number(std::string_view argument, std::uint64_t batch,
                                           std::size_t row);

/// Coordinates outside the dtype of the voxels.
struct OutsideVoxels {
    std::uint64_t numbers = 0;
    std::uint64_t first = kNoElement;  // the first of them, an element of the points
};
/// The first of them has this `value`, which is in this `voxel`.
[[noreturn]] TH_API void fail_voxels(OutsideVoxels const& outside, std::size_t axes, double value,
                                     double voxel, Dtype dtype);
/// A batch does not fit the dtype of the voxels.
[[noreturn]] TH_API void fail_voxel_batch(std::int64_t batch, std::size_t row, Dtype dtype);

/// The dtype of the reduced values of a voxel.
TH_API Dtype reduced_dtype(Dtype values, coords::VoxelReduce reduce) noexcept;
/// A row has a voxel that is not in [0, voxels).
[[noreturn]] TH_API void fail_voxel_number(std::int64_t voxel, std::int64_t voxels);
[[noreturn]] TH_API void fail_empty_voxel(std::uint64_t voxel);
/// Sums of integers do not fit their dtype.
[[noreturn]] TH_API void fail_voxel_sums(std::uint64_t count, Dtype dtype);

/// An outlier above this would scale ordinary distances so far down that their squares underflow.
inline constexpr double kLargestCoordinate = 1e150;
[[noreturn]] TH_API void fail_far(std::string_view argument, std::uint64_t count);

/// A power of two. Coordinates up to `largest` times it have squares within float64. Distances are
/// those of the unscaled numbers to the last bit, for huge and for tiny numbers. Squares of numbers
/// below 2^-1011 of the largest coordinate underflow: no scale holds both.
TH_API double search_scale(double largest) noexcept;
/// The radius of a search on that scale.
TH_API double scaled_radius(double radius, double scale) noexcept;

}  // namespace tensorhash::backend
