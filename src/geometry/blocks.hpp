// The buffers of a grid, checked: keys, values, and the neighbours of each block.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "geometry/camera.hpp"
#include "runtime/parallel.hpp"
#include "tensorhash/geometry/voxel_block_grid.hpp"

namespace tensorhash::geometry {

/// Calls body(block) for blocks 0 to count - 1 on all threads.
template <class Body>
void for_blocks(std::size_t count, Body&& body) {
    constexpr std::size_t kBlocks = 4;  // per task: a block is work for some microseconds
    runtime::run_tasks((count + kBlocks - 1) / kBlocks, [&](std::size_t task) {
        std::size_t const end = std::min(count, (task + 1) * kBlocks);
        for (std::size_t block = task * kBlocks; block < end; ++block) body(block);
    });
}

/// Numbers that are stored as float32 or uint16, and read and written as float32.
class Numbers {
public:
    Numbers() = default;
    explicit Numbers(Tensor tensor)
        : tensor_(std::move(tensor)), data_(tensor_.data()),
          is_float_(tensor_.dtype() == Dtype::Float32) {}

    explicit operator bool() const noexcept { return data_ != nullptr; }
    float operator[](std::size_t i) const noexcept {
        return is_float_ ? static_cast<float const*>(data_)[i]
                         : static_cast<float>(static_cast<std::uint16_t const*>(data_)[i]);
    }
    /// Rounds towards zero where the numbers are integers, and stays within their range.
    void set(std::size_t i, float value) const noexcept {
        if (is_float_) {
            static_cast<float*>(data_)[i] = value;
        } else {
            static_cast<std::uint16_t*>(data_)[i] =
                static_cast<std::uint16_t>(std::clamp(value, 0.0f, 65535.0f));
        }
    }
    /// The numbers if they are floats, else null.
    float* floats() const noexcept { return is_float_ ? static_cast<float*>(data_) : nullptr; }

private:
    Tensor tensor_;
    void* data_ = nullptr;
    bool is_float_ = false;
};

/// Some blocks have coordinates beyond int32.
[[noreturn]] void fail_blocks_outside();

/// Throws ValueError unless the voxel size and the resolution are positive and usable.
void check_scale(BlockScale scale);

/// int32 [M, 3], contiguous. Throws TypeError or ValueError for other arrays.
Tensor check_blocks(Tensor const& blocks);

/// Views of the buffers. Growth of the map makes them stale.
struct BlockBuffers {
    /// Throws ValueError or TypeError if the columns are missing or of another form.
    explicit BlockBuffers(VoxelBlockGrid const& grid);

    std::int32_t const* key(std::size_t index) const noexcept {
        return static_cast<std::int32_t const*>(keys.data()) + 3 * index;
    }
    float distance(std::size_t voxel) const noexcept { return distances[voxel]; }

    int resolution;
    std::size_t voxels;  // of a block
    float voxel_size;
    Tensor keys;
    Tensor tsdf;
    float* distances;
    Numbers weight;
    Numbers color;  // empty if the grid has none
};

/// The 27 blocks around each block in use, itself included.
class Neighbourhood {
public:
    static constexpr std::size_t kAround = 27;
    static constexpr std::int32_t kNoBlock = -1;

    explicit Neighbourhood(HashMap const& map);

    std::size_t count() const noexcept { return active_.size(); }
    /// The buffer index of a block.
    std::size_t index(std::size_t block) const noexcept {
        return static_cast<std::size_t>(active_[block]);
    }
    /// The block at (dx, dy, dz), each -1, 0 or 1, or kNoBlock.
    std::int32_t at(std::size_t block, int dx, int dy, int dz) const noexcept {
        return around_[block * kAround + static_cast<std::size_t>(13 + dx + 3 * dy + 9 * dz)];
    }

private:
    std::vector<std::int32_t> active_;
    std::vector<std::int32_t> around_;
};

}  // namespace tensorhash::geometry
