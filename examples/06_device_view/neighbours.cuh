// A kernel of a user: it looks keys up in a tensorhash table, with the table's view as an argument.
// Only this file is device code; main.cpp fills the table and starts the kernel.
#pragma once

#include <cstdint>

#include "tensorhash/device_view.hpp"

/// A key: a row of an int32 [N, 3] array.
struct Voxel {
    std::int32_t x, y, z;
};

/// For each voxel: how many of its six neighbours are in the table, and the sum of their weights.
struct Neighbours {
    tensorhash::TableView<Voxel> table;
    float const* weights;  // value column 0 of the table, one float per buffer row
    Voxel const* voxels;
    std::int32_t* counts;
    float* sums;
    std::uint32_t rows;
};

__global__ void sum_neighbours(Neighbours const work) {
    constexpr Voxel kSteps[] = {{-1, 0, 0}, {1, 0, 0},  {0, -1, 0},
                                {0, 1, 0},  {0, 0, -1}, {0, 0, 1}};
    std::uint32_t const stride = gridDim.x * blockDim.x;
    for (std::uint32_t row = blockIdx.x * blockDim.x + threadIdx.x; row < work.rows;
         row += stride) {
        Voxel const voxel = work.voxels[row];
        std::int32_t count = 0;
        float sum = 0;
        for (Voxel const& step : kSteps) {
            Voxel const neighbour{voxel.x + step.x, voxel.y + step.y, voxel.z + step.z};
            std::int32_t const index = work.table.find(neighbour);
            if (index >= 0) {
                ++count;
                sum += work.weights[index];
            }
        }
        work.counts[row] = count;
        work.sums[row] = sum;
    }
}
