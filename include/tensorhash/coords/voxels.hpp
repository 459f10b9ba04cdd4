// Points to voxels: the integer cell of every point, and one value from all values of a cell.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "tensorhash/coords/types.hpp"
#include "tensorhash/export.hpp"

namespace tensorhash::coords {

/// floor((points - origin) / voxel_size) in float64, as `dtype` (int32 or int64) [N, D]. With
/// `batch`, one integer per row, [N, 1 + D] with the batch first. Refuses NaN, infinities and
/// voxels outside the dtype, and counts them in the message.
TH_API Tensor voxel_coords(Tensor const& points, std::vector<double> const& voxel_size,
                           std::vector<double> const& origin, std::optional<Tensor> const& batch,
                           Dtype dtype);

/// The mean of the points of each occupied voxel, in order of first occurrence: voxel_coords() in
/// int64, unique() and reduce_voxels() in one call, with the same bits.
TH_API Tensor voxel_means(Tensor const& points, std::vector<double> const& voxel_size,
                          std::vector<double> const& origin);

/// Throws a ValueError that lists the valid names.
TH_API VoxelReduce voxel_reduce_from_name(std::string_view name);

/// Reduces the rows of `values` [N, ...] that share a voxel, in row order. `inverse`, int64 [N],
/// gives the voxel of each row, from 0 to `voxels` - 1. Floats are added in float64 and rounded
/// once to their dtype. Integers are added exactly: sums are int64 or uint64, and refused if they
/// do not fit; means are float64.
TH_API Tensor reduce_voxels(Tensor const& values, Tensor const& inverse, std::int64_t voxels,
                            VoxelReduce reduce);

/// Functions that pick a row of each voxel return int64 [voxels]. The row nearest to the centre of
/// the voxel; of equally near ones the first.
TH_API Tensor nearest_to_centers(Tensor const& points, std::vector<double> const& voxel_size,
                                 std::vector<double> const& origin, Tensor const& inverse,
                                 std::int64_t voxels);
/// The row nearest to the mean of the voxel's points; of equally near ones the first.
TH_API Tensor nearest_to_centroids(Tensor const& points, Tensor const& inverse,
                                   std::int64_t voxels);
/// The first row with the most frequent label; of equally frequent labels the one that came first.
/// Labels are integers or bools, one per row. `ignore_label` does not count, unless a voxel has no
/// other label.
TH_API Tensor mode_rows(Tensor const& labels, std::optional<std::int64_t> ignore_label,
                        Tensor const& inverse, std::int64_t voxels);

}  // namespace tensorhash::coords
