// Small kernels over the in rows themselves: a plane of 64 cells at a time, a word for each step to a neighbour.
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

/// The first half of a mirrored kernel that reaches one cell at most. Where many cells of a plane are filled, and in scans
/// of surfaces some are, that is less work than a window around each of them.
class PlaneSweeps {
public:
    static bool take(Question const& question, Swept const& swept, bool repeated) noexcept;

    PlaneSweeps(Question const& question, BlockFrame const& frame, VoxelBlocks const& blocks);

    /// Pairs of each group; after it write() knows its places.
    std::vector<std::int64_t> count();
    /// Writes the pairs of each group in the order of rows().
    void write(Answer& answer);
    std::span<std::uint32_t const> rows() const noexcept { return blocks_.rows(); }

private:
    /// Steps (x, y, z) that come before (0, 0, 0): nine to the plane before, four within the plane.
    static constexpr std::size_t kSteps = 13;
    /// [x - 1, x]: the blocks y - 1 to y + 1, and of each z - 1 to z + 1 and one that nobody wants.
    using Near = std::array<std::array<std::uint32_t, 12>, 2>;

    Near& near(std::size_t block) noexcept { return reinterpret_cast<Near*>(near_.data())[block]; }
    void look_around(std::uint32_t block) noexcept;
    /// Calls visit(block) for the blocks that begin in a chunk of rows.
    template <class Visit>
    void for_blocks(std::size_t begin, std::size_t end, Visit const& visit) const;
    /// Calls visit(x, words) for every plane of a block that has cells; bit c of a step's word: cell c has such a neighbour.
    template <class Visit>
    void for_planes(std::uint32_t block, Visit const& visit);

    BlockFrame const& frame_;
    VoxelBlocks const& blocks_;
    bool has_x_;
    std::array<std::size_t, kSteps> group_{};  // of each step
    std::array<std::uint64_t, kSteps>
        wanted_{};            // all ones, or none if the kernel has no such step
    runtime::Chunks chunks_;  // of rows
    GroupPlaces places_;
    runtime::Block near_;  // a Near of each block
};

}  // namespace tensorhash::coords
