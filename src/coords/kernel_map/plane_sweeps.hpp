// Small kernels over the in rows: one plane of 64 cells at a time, one word per step to a
// neighbour.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "coords/kernel_map/finish_groups.hpp"
#include "coords/kernel_map/pair_writer.hpp"
#include "coords/kernel_map/voxel_blocks.hpp"
#include "runtime/memory.hpp"
#include "runtime/parallel.hpp"

namespace tensorhash::coords {

/// Finds the pairs of the first half of a mirrored kernel that reaches at most one cell. Surface
/// scans fill several cells of a plane; then this is less work than one window per cell.
class PlaneSweeps {
public:
    static bool take(KernelMapRequest const& request, Swept const& swept, bool repeated) noexcept;

    PlaneSweeps(KernelMapRequest const& request, BlockFrame const& frame,
                VoxelBlocks const& blocks);

    /// Counts the pairs of each group, and prepares the places for write().
    std::vector<std::int64_t> count();
    /// Writes the pairs of each group in the order of rows().
    void write(KernelMapPairs& pairs);
    std::span<std::uint32_t const> rows() const noexcept { return blocks_.rows(); }

private:
    /// Steps (x, y, z) before (0, 0, 0): nine into the previous plane, four within the plane.
    static constexpr std::size_t kSteps = 13;
    /// [x - 1, x]: the blocks y - 1 to y + 1; for each of them z - 1 to z + 1 and one unused place.
    using Near = std::array<std::array<std::uint32_t, 12>, 2>;

    Near& near(std::size_t block) noexcept { return reinterpret_cast<Near*>(near_.data())[block]; }
    void look_around(std::uint32_t block) noexcept;
    /// Calls body(block) for the blocks with a first row in [begin, end).
    template <class Body>
    void for_blocks(std::size_t begin, std::size_t end, Body const& body) const;
    /// Calls body(x, words) for every plane of a block that has rows. Bit c of a step's word is set
    /// if cell c has a neighbour there.
    template <class Body>
    void for_planes(std::uint32_t block, Body const& body);

    BlockFrame const& frame_;
    VoxelBlocks const& blocks_;
    bool has_x_;
    std::array<std::size_t, kSteps> group_{};     // of each step
    std::array<std::uint64_t, kSteps> wanted_{};  // all ones if the kernel has the step, else 0
    runtime::Chunks chunks_;                      // of rows
    GroupPlaces places_;
    runtime::Block near_;  // one Near per block
};

}  // namespace tensorhash::coords
