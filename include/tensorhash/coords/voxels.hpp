// Points to voxels: the integer cell of every point, and what becomes of the values that share one.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "tensorhash/export.hpp"
#include "tensorhash/tensor.hpp"

namespace tensorhash::coords {

/// floor((points - origin) / voxel_size) in float64, as `dtype` (int32 or int64) [N, D]; with `batch`, an integer a row,
/// [N, 1 + D] with the batch first. NaN, infinities and voxels outside the dtype are refused and counted.
TH_API Tensor voxel_coords(Tensor const& points, std::vector<double> const& voxel_size,
                           std::vector<double> const& origin, std::optional<Tensor> const& batch,
                           Dtype dtype);

enum class VoxelReduce : std::uint8_t { First, Last, Sum, Mean, Min, Max };

/// Throws ValueError that lists the names.
TH_API VoxelReduce voxel_reduce_from_name(std::string_view name);

/// Joins the rows of `values` [N, ...] that share a voxel, in row order; `inverse`, int64 [N], says which of `voxels` each
/// row is in. Floats are added in float64 and rounded once to their dtype. Integers are added exactly: sums come as int64
/// or uint64, refused where they do not fit, and means as float64.
TH_API Tensor reduce_voxels(Tensor const& values, Tensor const& inverse, std::int64_t voxels,
                            VoxelReduce reduce);

}  // namespace tensorhash::coords
