// Voxels on the CPU. These functions check numbers; the caller checks dtypes and shapes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "backend/coords_backend.hpp"
#include "coords/rows/row_groups.hpp"
#include "tensorhash/coords/types.hpp"

namespace tensorhash::coords {

/// The voxel of each point.
Tensor quantize_points(backend::VoxelizeRequest const& request);

/// The mean of the points of each voxel, in order of first occurrence. Returns nothing for points
/// that need the general way: few, of other dtypes, with a batch, far apart or not finite.
std::optional<Tensor> mean_points(backend::VoxelizeRequest const& request);

/// Reduces the rows of `values` that share a voxel to one row.
Tensor reduce_rows(Tensor const& values, Tensor const& inverse, std::int64_t voxels,
                   VoxelReduce reduce);

/// The rows of each voxel. Throws ValueError if a voxel is out of range or has no row.
RowGroups group_by_voxel(Tensor const& inverse, std::int64_t voxels);

/// int64 [V]: the row nearest to the centre of each voxel; of equally near ones the first.
Tensor rows_near_centers(Tensor const& points, std::vector<double> const& voxel_size,
                         std::vector<double> const& origin, Tensor const& inverse,
                         std::int64_t voxels);
/// int64 [V]: the row nearest to the mean of the points of each voxel.
Tensor rows_near_centroids(Tensor const& points, Tensor const& inverse, std::int64_t voxels);
/// int64 [V]: the first row with the most frequent label of each voxel.
Tensor rows_of_modes(Tensor const& labels, std::optional<std::int64_t> ignore_label,
                     Tensor const& inverse, std::int64_t voxels);

}  // namespace tensorhash::coords
