// Voxels on the CPU. These functions check numbers; the caller checks dtypes and shapes.
#pragma once

#include <cstdint>

#include "backend/coords_backend.hpp"
#include "tensorhash/coords/types.hpp"

namespace tensorhash::coords {

/// The voxel of each point.
Tensor quantize_points(backend::VoxelizeRequest const& request);

/// Reduces the rows of `values` that share a voxel to one row.
Tensor reduce_rows(Tensor const& values, Tensor const& inverse, std::int64_t voxels,
                   VoxelReduce reduce);

}  // namespace tensorhash::coords
