// Checks the columns of a grid and finds the neighbours of its blocks.
#include "geometry/blocks.hpp"

#include <cmath>
#include <limits>
#include <string>

#include "tensorhash/error.hpp"

namespace tensorhash::geometry {
namespace {

constexpr std::int64_t kMaxResolution = 256;

Element const& column_of(VoxelBlockGrid const& grid, int column, char const* name) {
    if (column < 0) {
        throw ValueError(std::string("attr_names: expected an attribute '") + name +
                         "' in the grid, got none");
    }
    return grid.map.value_elements().at(static_cast<std::size_t>(column));
}

void check_column(VoxelBlockGrid const& grid, int column, char const* name, std::int64_t channels,
                  bool may_be_uint16) {
    Element const& element = column_of(grid, column, name);
    std::string const start = std::string("attribute '") + name + "': expected ";
    if (element.dtype != Dtype::Float32 && !(may_be_uint16 && element.dtype == Dtype::UInt16)) {
        throw TypeError(start + (may_be_uint16 ? "float32 or uint16" : "float32") + ", got " +
                        std::string(tensorhash::name(element.dtype)));
    }
    std::int64_t elements = 1;
    for (std::int64_t const extent : element.shape) elements *= extent;
    std::int64_t const r = grid.scale.resolution;
    if (elements != r * r * r * channels) {
        throw ValueError(start + std::to_string(channels) + " channel(s) per voxel, got shape " +
                         to_string(element.shape));
    }
}

bool overflows(std::int32_t a, int step) noexcept {
    std::int64_t const sum = std::int64_t{a} + step;
    return sum < std::numeric_limits<std::int32_t>::min() ||
           sum > std::numeric_limits<std::int32_t>::max();
}

/// The keys around `key`. A neighbour outside int32 does not exist; `key` stands in for it.
void keys_around(std::int32_t const* key, std::int32_t* out) noexcept {
    for (std::size_t around = 0; around < Neighbourhood::kAround; ++around, out += 3) {
        std::array<int, 3> const step{static_cast<int>(around % 3) - 1,
                                      static_cast<int>(around / 3 % 3) - 1,
                                      static_cast<int>(around / 9) - 1};
        bool outside = false;
        for (std::size_t axis = 0; axis < 3; ++axis) {
            outside |= overflows(key[axis], step[axis]);
            out[axis] = outside ? key[axis] : key[axis] + step[axis];
        }
        if (outside) std::copy_n(key, 3, out);
    }
}

}  // namespace

void fail_blocks_outside() {
    throw ValueError(
        "voxel_size: expected blocks with coordinates that fit int32, got some outside; use a "
        "larger voxel_size, or points nearer to the origin");
}

void check_scale(BlockScale scale) {
    float const size = static_cast<float>(scale.voxel_size);
    if (!std::isfinite(size) || size <= 0) {
        throw ValueError("voxel_size: expected a positive float32, got " +
                         std::to_string(scale.voxel_size));
    }
    if (scale.resolution < 1 || scale.resolution > kMaxResolution) {
        throw ValueError("block_resolution: expected 1 to " + std::to_string(kMaxResolution) +
                         ", got " + std::to_string(scale.resolution));
    }
}

Tensor check_blocks(Tensor const& blocks) {
    if (blocks.dtype() != Dtype::Int32) {
        throw TypeError("block_coords: expected int32, got " + std::string(name(blocks.dtype())));
    }
    if (blocks.rank() != 2 || blocks.shape()[1] != 3) {
        throw ValueError("block_coords: expected shape (M, 3), got " + to_string(blocks.shape()));
    }
    return blocks.contiguous();
}

BlockBuffers::BlockBuffers(VoxelBlockGrid const& grid)
    : resolution(static_cast<int>(grid.scale.resolution)),
      voxel_size(static_cast<float>(grid.scale.voxel_size)), keys(grid.map.key_tensor()) {
    check_scale(grid.scale);
    check_column(grid, grid.tsdf, "tsdf", 1, false);
    check_column(grid, grid.weight, "weight", 1, true);
    voxels = static_cast<std::size_t>(resolution) * static_cast<std::size_t>(resolution) *
             static_cast<std::size_t>(resolution);
    tsdf = grid.map.value_tensor(static_cast<std::size_t>(grid.tsdf));
    distances = static_cast<float*>(tsdf.data());
    weight = Numbers(grid.map.value_tensor(static_cast<std::size_t>(grid.weight)));
    if (grid.color < 0) return;
    check_column(grid, grid.color, "color", 3, true);
    color = Numbers(grid.map.value_tensor(static_cast<std::size_t>(grid.color)));
}

Neighbourhood::Neighbourhood(HashMap const& map) {
    Tensor const listed = map.active_buf_indices();
    auto const indices = listed.as<std::int32_t>();
    active_.assign(indices.begin(), indices.end());
    Tensor const keys = map.key_tensor();
    auto const* const key = static_cast<std::int32_t const*>(keys.data());
    Tensor around = Tensor::empty({static_cast<std::int64_t>(count() * kAround), 3}, Dtype::Int32);
    auto* const rows = static_cast<std::int32_t*>(around.data());
    runtime::for_ranges(count(), 64, [&](std::size_t begin, std::size_t end) {
        for (std::size_t block = begin; block < end; ++block) {
            keys_around(key + 3 * index(block), rows + 3 * kAround * block);
        }
    });
    Located const found = map.find(around);
    auto const places = found.indices.as<std::int32_t>();
    std::vector<std::int32_t> block_at(static_cast<std::size_t>(map.capacity()), kNoBlock);
    for (std::size_t block = 0; block < count(); ++block) {
        block_at[index(block)] = static_cast<std::int32_t>(block);
    }
    around_.resize(count() * kAround);
    for (std::size_t i = 0; i < around_.size(); ++i) {
        auto const block = static_cast<std::int32_t>(i / kAround);
        std::int32_t const place =
            places[i] < 0 ? kNoBlock : block_at[static_cast<std::size_t>(places[i])];
        bool const is_outside = place == block && i % kAround != kAround / 2;
        around_[i] = is_outside ? kNoBlock : place;
    }
}

}  // namespace tensorhash::geometry
