// The range of depths where rays can meet a block, for squares of pixels.
#pragma once

#include <cstddef>
#include <cstdint>

#include "geometry/camera.hpp"

namespace tensorhash::geometry {

/// float32 [ceil(height / step), ceil(width / step), 2]: the least and the greatest depth of the
/// blocks that a square may show. Where it shows none, the first number is the greater one.
Tensor depth_ranges(BlockScale scale, Tensor const& blocks, Pinhole const& pinhole,
                    Rigid const& pose, View const& view, DepthRange const& range);

}  // namespace tensorhash::geometry
