// Small kernels over the in rows themselves: a plane of 64 cells at a time, a word for each step to a neighbour.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "coords/finish_groups.hpp"
#include "coords/pair_writer.hpp"
#include "coords/voxel_blocks.hpp"
#include "runtime/memory.hpp"
#include "runtime/parallel.hpp"

namespace tensorhash::coords {

/// The first half of a mirrored kernel that reaches one cell at most. Where many cells of a plane are filled, and in scans
/// of surfaces some are, that is less work than a window around each of them.
class PlaneSweeps {
public:
    static bool take(Question const& question, Swept const& swept) noexcept;

    PlaneSweeps(Question const& question, BlockFrame const& frame, VoxelBlocks const& blocks);

    /// Pairs of each group; after it write() knows its places.
    std::vector<std::int64_t> count();
    /// Writes the pairs of each group in the order of rows().
    void write(Answer& answer);
    std::span<std::uint32_t const> rows() const noexcept { return blocks_.rows(); }

    /// Steps (x, y, z) that come before (0, 0, 0): nine to the plane before, four within the plane.
    static constexpr std::size_t kSteps = 13;
    using Words = std::array<std::uint64_t, kSteps>;
    /// Blocks around one: [x - 1, x][y - 1 to y + 1][z - 1 to z + 1], and one more that nobody wants.
    struct Around {
        std::array<std::array<std::array<std::uint32_t, 4>, 3>, 2> block;
    };

private:
    Around& around(std::size_t block) noexcept {
        return reinterpret_cast<Around*>(around_.data())[block];
    }
    void look_around(std::uint32_t block) noexcept;
    /// Calls visit(x, words) for every plane of a block that has cells; bit c of a step's word: cell c has such a neighbour.
    template <class Visit>
    void for_planes(std::uint32_t block, Visit const& visit);

    BlockFrame const& frame_;
    VoxelBlocks const& blocks_;
    bool has_x_;
    std::array<std::size_t, kSteps> group_{};  // of each step
    Words wanted_{};                           // all ones, or none if the kernel has no such step
    runtime::Chunks chunks_;                   // of blocks
    GroupPlaces places_;
    runtime::Block around_;  // an Around of each block
};

}  // namespace tensorhash::coords
