// Reads voxels across the borders of blocks, and writes the points where the surface crosses an
// edge between two voxels.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "geometry/blocks.hpp"

namespace tensorhash::geometry {

/// A voxel of a block, or of one of its neighbours: coordinates from -1 to resolution + 1.
struct Voxel {
    int x = 0;
    int y = 0;
    int z = 0;

    Voxel step(std::size_t axis, int by) const noexcept {
        return {axis == 0 ? x + by : x, axis == 1 ? y + by : y, axis == 2 ? z + by : z};
    }
};

/// The rows of an extraction, shared by points and vertices.
struct SurfaceRows {
    SurfaceRows(std::size_t rows, bool colored)
        : out{Tensor::empty({static_cast<std::int64_t>(rows), 3}, Dtype::Float32),
              Tensor::empty({static_cast<std::int64_t>(rows), 3}, Dtype::Float32),
              Tensor::empty({colored ? static_cast<std::int64_t>(rows) : 0, 3}, Dtype::Float32)} {}

    SurfacePoints out;
    float* points = static_cast<float*>(out.points.data());
    float* normals = static_cast<float*>(out.normals.data());
    float* colors = static_cast<float*>(out.colors.data());
};

class Surface {
public:
    Surface(BlockBuffers const& blocks, Neighbourhood const& around)
        : blocks_(blocks), around_(around) {}

    /// Where a voxel lies in the value columns, or nothing if its block is not in use.
    std::optional<std::size_t> find(std::size_t block, Voxel v) const noexcept {
        int const r = blocks_.resolution;
        auto const side = [r](int i) { return i < 0 ? -1 : i >= r ? 1 : 0; };
        int const dx = side(v.x);
        int const dy = side(v.y);
        int const dz = side(v.z);
        std::int32_t const owner = around_.at(block, dx, dy, dz);
        Voxel const in{v.x - dx * r, v.y - dy * r, v.z - dz * r};
        if (owner == Neighbourhood::kNoBlock || in.x >= r || in.y >= r || in.z >= r) return {};
        return around_.index(static_cast<std::size_t>(owner)) * blocks_.voxels +
               static_cast<std::size_t>((in.z * r + in.y) * r + in.x);
    }

    /// Writes the point where the edge from voxel `v` along `axis` crosses the surface.
    void write(std::size_t block, Voxel v, std::size_t axis, SurfaceRows& rows,
               std::size_t row) const noexcept {
        std::size_t const from = *find(block, v);
        std::size_t const to = *find(block, v.step(axis, 1));
        float const start = blocks_.distance(from);
        float const share = (0 - start) / (blocks_.distance(to) - start);
        write_point(block, v, axis, share, rows.points + 3 * row);
        write_normal(block, v, axis, share, rows.normals + 3 * row);
        if (!blocks_.color) return;
        for (std::size_t c = 0; c < 3; ++c) {
            rows.colors[3 * row + c] =
                ((1 - share) * blocks_.color[3 * from + c] + share * blocks_.color[3 * to + c]) /
                255.0f;
        }
    }

private:
    void write_point(std::size_t block, Voxel v, std::size_t axis, float share,
                     float* out) const noexcept {
        std::int32_t const* const key = blocks_.key(around_.index(block));
        std::array<int, 3> const at{v.x, v.y, v.z};
        for (std::size_t i = 0; i < 3; ++i) {
            std::int64_t const x = std::int64_t{key[i]} * blocks_.resolution + at[i];
            out[i] = blocks_.voxel_size * (static_cast<float>(x) + (i == axis ? share : 0.0f));
        }
    }

    void write_normal(std::size_t block, Voxel v, std::size_t axis, float share,
                      float* out) const noexcept {
        auto const from = gradient(block, v);
        auto const to = gradient(block, v.step(axis, 1));
        std::array<float, 3> mixed{};
        for (std::size_t i = 0; i < 3; ++i) mixed[i] = (1 - share) * from[i] + share * to[i];
        float const squared = mixed[0] * mixed[0] + mixed[1] * mixed[1] + mixed[2] * mixed[2];
        float const length = static_cast<float>(std::sqrt(squared) + 1e-5);  // never 0
        for (std::size_t i = 0; i < 3; ++i) out[i] = mixed[i] / length;
    }

    /// Central differences; 0 where a neighbour is missing.
    std::array<float, 3> gradient(std::size_t block, Voxel v) const noexcept {
        std::array<float, 3> out{};
        for (std::size_t axis = 0; axis < 3; ++axis) {
            auto const after = find(block, v.step(axis, 1));
            auto const before = find(block, v.step(axis, -1));
            if (after && before) out[axis] = blocks_.distance(*after) - blocks_.distance(*before);
        }
        return out;
    }

    BlockBuffers const& blocks_;
    Neighbourhood const& around_;
};

}  // namespace tensorhash::geometry
