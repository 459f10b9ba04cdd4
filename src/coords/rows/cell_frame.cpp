// Tabulates the steps of all offsets.
#include "coords/rows/cell_frame.hpp"

namespace tensorhash::coords {
namespace {

constexpr std::size_t kMostOffsets = 4096;
// The neighbours of a block inside its kernel's reach, for the usual kernels.
constexpr std::size_t kFewDeltas = 27;

struct Target {
    std::uint64_t delta;
    std::uint8_t cell;
};

Target target_of(CellFrame const& frame, std::size_t cell, std::int64_t const* offset) noexcept {
    Target target{0, 0};
    std::int64_t const side = std::int64_t{1} << frame.side_bits;
    for (std::size_t axis = 0; axis < frame.axes; ++axis) {
        auto const shift = frame.side_bits * static_cast<unsigned>(frame.axes - 1 - axis);
        auto const at = static_cast<std::int64_t>(cell >> shift) & (side - 1);
        // Whole blocks apart from the rest: at + offset may overflow. The shift rounds down.
        std::int64_t const to = at + (offset[axis] & (side - 1));
        std::int64_t const blocks = (offset[axis] >> frame.side_bits) + (to >> frame.side_bits);
        // Weights of steps back wrap around, as the sum of numbers does.
        target.delta += static_cast<std::uint64_t>(blocks) * frame.weight[axis];
        target.cell = static_cast<std::uint8_t>(target.cell << frame.side_bits | (to & (side - 1)));
    }
    return target;
}

}  // namespace

std::optional<CellSteps> CellSteps::of(CellFrame const& frame,
                                       std::span<std::int64_t const> offsets) {
    std::size_t const count = offsets.size() / frame.axes;
    if (count > kMostOffsets) return {};
    CellSteps out;
    std::vector<Target> targets;
    for (std::size_t i = 0; i < count * kCells; ++i) {
        targets.push_back(target_of(frame, i % kCells, &offsets[i / kCells * frame.axes]));
        out.deltas.push_back(targets.back().delta);
    }
    std::sort(out.deltas.begin(), out.deltas.end());
    out.deltas.erase(std::unique(out.deltas.begin(), out.deltas.end()), out.deltas.end());
    if (out.deltas.size() > std::min(std::max(kFewDeltas, 2 * count), 4 * count)) return {};
    out.hits.assign(kCells * out.deltas.size(), 0);
    out.reach.assign(out.deltas.size(), 0);
    for (std::size_t i = 0; i < targets.size(); ++i) {
        auto const at = std::lower_bound(out.deltas.begin(), out.deltas.end(), targets[i].delta);
        auto const delta = static_cast<std::size_t>(at - out.deltas.begin());
        std::size_t const cell = i % kCells;
        out.steps.push_back({static_cast<std::uint16_t>(delta), targets[i].cell});
        out.hits[cell * out.deltas.size() + delta] |= std::uint64_t{1} << targets[i].cell;
        out.reach[delta] |= std::uint64_t{1} << cell;
    }
    return out;
}

}  // namespace tensorhash::coords
