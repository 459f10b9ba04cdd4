// Images in float32.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tensorhash/geometry/voxel_block_grid.hpp"

namespace tensorhash::geometry {

struct Image {
    std::size_t height = 0;
    std::size_t width = 0;
    std::vector<float> numbers;

    /// Whether a pixel lies between the centres of the first and the last pixel.
    bool holds(float u, float v) const noexcept {
        return u >= 0 && v >= 0 && u <= static_cast<float>(width) - 1.0f &&
               v <= static_cast<float>(height) - 1.0f;
    }
};

/// Throws ValueError unless all numbers are finite and positive (`min` may be 0).
void check_range(DepthRange const& range);

/// Depth in metres, from any real dtype, shape [H, W] or [H, W, 1]. 0 where nothing was measured:
/// NaN, infinity, 0 and negative numbers.
Image to_depth(Tensor const& depth, double scale);

/// Colours from 0 to 255, shape [H, W, 3] or [N, 3]. Floats are from 0 to 1. An empty shape [H, W]
/// in `image` is left to the caller.
std::vector<float> to_colors(Tensor const& colors, std::string const& argument);
Image to_color_image(Tensor const& color);

}  // namespace tensorhash::geometry
