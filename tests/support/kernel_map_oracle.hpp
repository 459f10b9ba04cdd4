// Random voxels for tests of kernel maps, and the maps by brute force.
#pragma once

#include <cstdint>
#include <vector>

#include "tensorhash/coords/kernel_map.hpp"
#include "tensorhash/tensor.hpp"

namespace th_test {

using tensorhash::Shape;
using tensorhash::Tensor;

using Voxel = std::vector<std::int32_t>;
using Voxels = std::vector<Voxel>;

Tensor tensor_of(Voxels const& rows, std::size_t columns);

/// Distinct rows in random order; axis a is spread over [-range[a], range[a]].
Voxels random_rows(std::size_t count, std::vector<std::int32_t> const& range, unsigned seed);

/// A third of the cells of a cube, in random order.
Voxels dense_rows(std::int32_t side, std::size_t axes, unsigned seed);

struct Pairs {
    std::vector<std::int32_t> in;
    std::vector<std::int32_t> out;
    std::vector<std::int64_t> offsets{0};
};

/// Every pair of the map, found with a dictionary of the input rows.
Pairs brute_force(Voxels const& in, Voxels const& out, Shape const& stride,
                  tensorhash::coords::Kernel const& kernel);

/// The extent of the rows along their widest axis.
std::int64_t extent_of(Voxels const& rows);

}  // namespace th_test
