// A pinhole camera in float32. The order of additions is part of the result: it decides on which
// side of a pixel or block a voxel falls.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "tensorhash/geometry/voxel_block_grid.hpp"

namespace tensorhash::geometry {

struct Vec3 {
    float x = 0;
    float y = 0;
    float z = 0;
};

struct Pixel {
    float u = 0;
    float v = 0;
};

struct Pinhole {
    float fx = 0;
    float fy = 0;
    float cx = 0;
    float cy = 0;

    Pixel project(Vec3 p) const noexcept {
        float const inverse = 1.0f / p.z;
        return {fx * p.x * inverse + cx, fy * p.y * inverse + cy};
    }
    /// The point at depth 1 that the pixel shows.
    Vec3 unproject(Pixel pixel) const noexcept {
        return {(pixel.u - cx) / fx, (pixel.v - cy) / fy, 1.0f};
    }
};

/// A rotation and a translation.
struct Rigid {
    std::array<std::array<float, 4>, 3> rows{};

    Vec3 apply(Vec3 p) const noexcept {
        return {of_row(0, p) + rows[0][3], of_row(1, p) + rows[1][3], of_row(2, p) + rows[2][3]};
    }
    Vec3 rotate(Vec3 p) const noexcept { return {of_row(0, p), of_row(1, p), of_row(2, p)}; }
    Vec3 translation() const noexcept { return {rows[0][3], rows[1][3], rows[2][3]}; }

private:
    float of_row(std::size_t row, Vec3 p) const noexcept {
        return p.x * rows[row][0] + p.y * rows[row][1] + p.z * rows[row][2];
    }
};

/// Takes a finite matrix [3, 3] of any dtype, with focal lengths that are not 0.
Pinhole to_pinhole(Tensor const& intrinsic, std::string const& argument);
/// Takes a finite matrix [4, 4] of any dtype. The last row is not read.
Rigid to_rigid(Tensor const& extrinsic, std::string const& argument);
/// The inverse of the same matrix, computed in float64: from the camera to the world.
Rigid to_inverse(Tensor const& extrinsic, std::string const& argument);

}  // namespace tensorhash::geometry
