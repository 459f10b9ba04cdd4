// Voxels on the CPU. Dtypes and shapes are checked; numbers are not.
#pragma once

#include <cstdint>

#include "backend/coords_backend.hpp"
#include "tensorhash/coords/types.hpp"

namespace tensorhash::coords {

/// The voxel of each point.
Tensor quantize_points(backend::VoxelizeRequest const& request);

/// One row per voxel from all rows of `values` that share it.
Tensor reduce_rows(Tensor const& values, Tensor const& inverse, std::int64_t voxels,
                   VoxelReduce reduce);

}  // namespace tensorhash::coords
