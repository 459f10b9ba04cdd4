// Lists voxels: their indices, coordinates and positions.
#include <string>

#include "geometry/blocks.hpp"
#include "runtime/scan.hpp"
#include "tensor/numbers.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::geometry {
namespace {

std::size_t cube(std::int64_t side) noexcept {
    return static_cast<std::size_t>(side * side * side);
}

/// int64 [N] from any integer dtype.
std::vector<std::int64_t> to_indices(Tensor const& tensor, std::string const& argument) {
    if (tensor.rank() != 1) {
        throw ValueError(argument + ": expected shape (N,), got " + to_string(tensor.shape()));
    }
    std::vector<std::int64_t> out(static_cast<std::size_t>(tensor.size()));
    Tensor const numbers = tensor.contiguous();
    visit_number(numbers.dtype(), argument, [&](auto type) {
        using Type = decltype(type);
        if constexpr (!std::is_integral_v<typename Type::Computed> || std::is_same_v<Type, Truth>) {
            throw TypeError(argument + ": expected integers, got " +
                            std::string(name(numbers.dtype())));
        } else {
            auto const* const data = static_cast<typename Type::Stored const*>(numbers.data());
            for (std::size_t i = 0; i < out.size(); ++i) {
                out[i] = static_cast<std::int64_t>(Type::load(data[i]));
            }
        }
    });
    return out;
}

void check_bounds(std::span<std::int64_t const> indices, std::int64_t most,
                  std::string const& argument) {
    for (std::int64_t const index : indices) {
        if (index >= 0 && index < most) continue;
        throw IndexError(argument + ": expected 0 to " + std::to_string(most - 1) + ", got " +
                         std::to_string(index));
    }
}

}  // namespace

Tensor voxel_indices(std::int64_t resolution, Tensor const& buf_indices) {
    check_scale({1, resolution});
    auto const blocks = to_indices(buf_indices, "buf_indices");
    std::size_t const voxels = cube(resolution);
    std::size_t const count = blocks.size() * voxels;
    Tensor out = Tensor::empty({4, static_cast<std::int64_t>(count)}, Dtype::Int64);
    auto* const rows = static_cast<std::int64_t*>(out.data());
    for_blocks(blocks.size(), [&](std::size_t block) {
        for (std::size_t i = 0; i < voxels; ++i) {
            std::size_t const at = block * voxels + i;
            auto const voxel = static_cast<std::int64_t>(i);
            rows[at] = blocks[block];
            rows[count + at] = voxel % resolution;
            rows[2 * count + at] = voxel / resolution % resolution;
            rows[3 * count + at] = voxel / (resolution * resolution);
        }
    });
    return out;
}

Tensor voxel_coordinates(VoxelBlockGrid const& grid, Tensor const& indices) {
    check_scale(grid.scale);
    if (indices.rank() != 2 || indices.shape()[0] != 4) {
        throw ValueError("voxel_indices: expected shape (4, N), got " + to_string(indices.shape()));
    }
    auto const numbers =
        to_indices(indices.contiguous().reshape({indices.size()}), "voxel_indices");
    std::size_t const count = numbers.size() / 4;
    check_bounds({numbers.data(), count}, grid.map.capacity(), "voxel_indices");
    check_bounds({numbers.data() + count, 3 * count}, grid.scale.resolution, "voxel_indices");
    Tensor const keys = grid.map.key_tensor();
    auto const* const key = static_cast<std::int32_t const*>(keys.data());
    Tensor out = Tensor::empty({3, static_cast<std::int64_t>(count)}, Dtype::Int64);
    auto* const rows = static_cast<std::int64_t*>(out.data());
    runtime::for_ranges(count, runtime::kGrain, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            for (std::size_t axis = 0; axis < 3; ++axis) {
                std::int64_t const corner = key[3 * numbers[i] + static_cast<std::int64_t>(axis)];
                rows[axis * count + i] =
                    corner * grid.scale.resolution + numbers[(axis + 1) * count + i];
            }
        }
    });
    return out;
}

VoxelPlaces voxel_places(VoxelBlockGrid const& grid, Tensor const& buf_indices) {
    check_scale(grid.scale);
    auto const blocks = to_indices(buf_indices, "buf_indices");
    check_bounds(blocks, grid.map.capacity(), "buf_indices");
    std::int64_t const r = grid.scale.resolution;
    std::size_t const voxels = cube(r);
    auto const count = static_cast<std::int64_t>(blocks.size() * voxels);
    VoxelPlaces out{Tensor::empty({count, 3}, Dtype::Float32),
                    Tensor::empty({count}, Dtype::Int64)};
    auto* const points = static_cast<float*>(out.points.data());
    auto* const flattened = static_cast<std::int64_t*>(out.flattened.data());
    Tensor const keys = grid.map.key_tensor();
    auto const* const key = static_cast<std::int32_t const*>(keys.data());
    float const size = static_cast<float>(grid.scale.voxel_size);
    for_blocks(blocks.size(), [&](std::size_t block) {
        std::int32_t const* const corner = key + 3 * blocks[block];
        std::size_t at = block * voxels;
        std::int64_t voxel = blocks[block] * static_cast<std::int64_t>(voxels);
        for (std::int64_t z = 0; z < r; ++z) {
            for (std::int64_t y = 0; y < r; ++y) {
                for (std::int64_t x = 0; x < r; ++x, ++at) {
                    points[3 * at] = static_cast<float>(corner[0] * r + x) * size;
                    points[3 * at + 1] = static_cast<float>(corner[1] * r + y) * size;
                    points[3 * at + 2] = static_cast<float>(corner[2] * r + z) * size;
                    flattened[at] = voxel++;
                }
            }
        }
    });
    return out;
}

Tensor occupied_voxels(VoxelBlockGrid const& grid, double weight_threshold) {
    check_scale(grid.scale);
    Tensor const active = grid.map.active_buf_indices();
    auto const blocks = active.as<std::int32_t>();
    std::size_t const voxels = cube(grid.scale.resolution);
    Numbers weight;
    if (grid.weight >= 0) weight = BlockBuffers(grid).weight;
    float const threshold = static_cast<float>(weight_threshold);
    auto const is_occupied = [&](std::size_t voxel) {
        return !weight || weight[voxel] > threshold;
    };
    std::vector<std::size_t> places(blocks.size());
    for_blocks(blocks.size(), [&](std::size_t block) {
        std::size_t const first = static_cast<std::size_t>(blocks[block]) * voxels;
        for (std::size_t i = 0; i < voxels; ++i) places[block] += is_occupied(first + i);
    });
    auto const total = static_cast<std::int64_t>(runtime::scan(places));
    Tensor out = Tensor::empty({total}, Dtype::Int64);
    auto* const rows = static_cast<std::int64_t*>(out.data());
    for_blocks(blocks.size(), [&](std::size_t block) {
        std::size_t const first = static_cast<std::size_t>(blocks[block]) * voxels;
        std::size_t at = places[block];
        for (std::size_t i = 0; i < voxels; ++i) {
            if (is_occupied(first + i)) rows[at++] = static_cast<std::int64_t>(first + i);
        }
    });
    return out;
}

Tensor voxel_coords(VoxelBlockGrid const& grid, Tensor const& flattened) {
    check_scale(grid.scale);
    auto const places = to_indices(flattened, "flattened");
    std::int64_t const r = grid.scale.resolution;
    auto const voxels = static_cast<std::int64_t>(cube(r));
    check_bounds(places, grid.map.capacity() * voxels, "flattened");
    Tensor const keys = grid.map.key_tensor();
    auto const* const key = static_cast<std::int32_t const*>(keys.data());
    Tensor out = Tensor::empty({static_cast<std::int64_t>(places.size()), 3}, Dtype::Int64);
    auto* const rows = static_cast<std::int64_t*>(out.data());
    runtime::for_ranges(places.size(), runtime::kGrain, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            std::int32_t const* const corner = key + 3 * (places[i] / voxels);
            std::int64_t const voxel = places[i] % voxels;
            rows[3 * i] = corner[0] * r + voxel % r;
            rows[3 * i + 1] = corner[1] * r + voxel / r % r;
            rows[3 * i + 2] = corner[2] * r + voxel / (r * r);
        }
    });
    return out;
}

}  // namespace tensorhash::geometry
