// Shifts the words of planes by one cell against each other. A first pass counts the pairs, a
// second writes them to their final places.
#include "coords/kernel_map/plane_sweeps.hpp"

#include <algorithm>
#include <bit>
#include <ranges>

namespace tensorhash::coords {
namespace {

constexpr std::size_t kTaskRows = 1024;
constexpr std::uint64_t kFirstCells = 0x0101010101010101ULL;  // z = 0 of every y
constexpr std::uint64_t kLastCells = kFirstCells << 7;

struct Step {
    std::int64_t x, y, z;
};

/// Steps in the order of the kernel's offsets.
constexpr Step step_of(std::size_t n) {
    auto const at = static_cast<std::int64_t>(n % 9);
    return {n < 9 ? -1 : 0, at / 3 - 1, at % 3 - 1};
}

/// The planes of one x: of the block, and of the blocks around it in y and z.
struct Planes {
    std::uint64_t at[3][3];

    Planes(VoxelBlocks const& blocks, std::array<std::uint32_t, 12> const& block,
           std::size_t x) noexcept {
        for (std::size_t y = 0; y < 3; ++y) {
            for (std::size_t z = 0; z < 3; ++z) at[y][z] = blocks.plane(block[4 * y + z], x);
        }
    }
    /// Bit c: the cell at a step of `y` (0: one back, 1: none, 2: one on) from cell c, in block
    /// `z`.
    std::uint64_t stepped(std::size_t y, std::size_t z) const noexcept {
        return y == 0   ? at[1][z] << 8 | at[0][z] >> 56
               : y == 1 ? at[1][z]
                        : at[1][z] >> 8 | at[2][z] << 56;
    }
    /// The words of the three steps in z (one back, none, one on) combined with a step of `y`.
    void words(std::size_t y, std::uint64_t* out) const noexcept {
        std::uint64_t const middle = stepped(y, 1);
        out[0] = (middle << 1 & ~kFirstCells) | (stepped(y, 0) >> 7 & kFirstCells);
        out[1] = middle;
        out[2] = (middle >> 1 & ~kLastCells) | (stepped(y, 2) << 7 & kLastCells);
    }
};

/// A step that leads at least one cell of a plane to a neighbour.
struct StepMatch {
    std::uint64_t word;  // the cells that have a neighbour at this step
    std::uint64_t own;   // the cells of the plane
    std::uint32_t const* blocks;
    std::uint32_t first;   // of the plane's rows
    std::uint16_t corner;  // the neighbour of cell 0: 32 * y + z from the first block in Near
    std::uint8_t x;        // of the neighbours' plane
    std::uint8_t step;
};

class StepPairs {
public:
    using Match = StepMatch;

    StepPairs(VoxelBlocks const& blocks, std::int64_t* next) : blocks_(blocks), next_(next) {}

    Pair operator()(Match const& match, std::size_t bit) const noexcept {
        std::uint64_t const before = match.own & ((std::uint64_t{1} << bit) - 1);
        std::size_t const cell =
            match.corner + bit + (bit & 0x38) * 3;  // five bits for z, then the bits of y
        std::uint32_t const block = match.blocks[(cell >> 6 & 12) | (cell >> 3 & 3)];
        return {&next_[match.step], blocks_.row(block, match.x, (cell >> 2 & 0x38) | (cell & 7)),
                blocks_.rows()[match.first + static_cast<std::uint32_t>(std::popcount(before))]};
    }

private:
    VoxelBlocks const& blocks_;
    std::int64_t* next_;  // of each step
};

}  // namespace

bool PlaneSweeps::take(KernelMapRequest const& request, Swept const& swept,
                       bool repeated) noexcept {
    return request.mirrored() && !repeated && swept.groups == request.all / 2 &&
           std::all_of(request.size.begin(), request.size.end(),
                       [](std::int64_t size) { return size <= 3; });
}

PlaneSweeps::PlaneSweeps(KernelMapRequest const& request, BlockFrame const& frame,
                         VoxelBlocks const& blocks)
    : frame_(frame), blocks_(blocks), has_x_(request.axes == 3),
      chunks_(runtime::cut(blocks.rows().size(), kTaskRows)),
      places_(chunks_.count, request.all / 2), near_(blocks.count() * sizeof(Near)) {
    std::array<std::int64_t, 3> size{1, 1, 1};
    std::copy(request.size.begin(), request.size.end(), size.end() - request.size.size());
    for (std::size_t n = 0; n < kSteps; ++n) {
        auto const [x, y, z] = step_of(n);
        std::array<std::int64_t, 3> const at{x + size[0] / 2, y + size[1] / 2, z + size[2] / 2};
        bool const wanted =
            std::min({at[0], at[1], at[2]}) >= 0 && at[1] < size[1] && at[2] < size[2];
        wanted_[n] = wanted ? ~std::uint64_t{0} : 0;
        if (wanted) {
            group_[n] = static_cast<std::size_t>((at[0] * size[1] + at[1]) * size[2] + at[2]);
        }
    }
}

void PlaneSweeps::look_around(std::uint32_t block) noexcept {
    auto const [x_weight, y_weight] = std::array{frame_.axis[0].weight, frame_.axis[1].weight};
    if (!has_x_) near(block)[0] = {};  // the empty block
    for (std::size_t x = has_x_ ? 0 : 1; x < 2; ++x) {
        std::uint64_t const back = (1 - x) * x_weight + y_weight + 1;
        for (std::size_t y = 0; y < 3; ++y) {
            blocks_.directory().find(blocks_.number(block) + y * y_weight - back, 3,
                                     &near(block)[x][4 * y]);
        }
    }
}

template <class Body>
void PlaneSweeps::for_blocks(std::size_t begin, std::size_t end, Body const& body) const {
    auto const all = std::views::iota(std::size_t{1}, blocks_.count());  // block 0 is empty
    auto const first_row = [&](std::size_t block) {
        return blocks_.first(static_cast<std::uint32_t>(block), 0);
    };
    auto const from = std::ranges::lower_bound(all, begin, {}, first_row) - all.begin();
    for (std::size_t const block : all | std::views::drop(from)) {
        if (first_row(block) >= end) break;
        body(static_cast<std::uint32_t>(block));
    }
}

template <class Body>
void PlaneSweeps::for_planes(std::uint32_t block, Body const& body) {
    auto const& around = near(block);
    std::uint32_t filled = 0;
    for (std::size_t x = 0; x < kBlockSide; ++x) {
        filled |= static_cast<std::uint32_t>(blocks_.plane(block, x) != 0) << x;
    }
    for (; filled != 0; filled &= filled - 1) {
        auto const x = static_cast<std::size_t>(std::countr_zero(filled));
        Planes const before(blocks_, around[x == 0 ? 0 : 1], (x + kBlockSide - 1) % kBlockSide);
        Planes const here(blocks_, around[1], x);
        std::array<std::uint64_t, kSteps + 2> words;
        for (std::size_t y = 0; y < 3; ++y) before.words(y, &words[3 * y]);
        for (std::size_t y = 0; y < 2; ++y) here.words(y, &words[9 + 3 * y]);
        for (std::size_t n = 0; n < kSteps; ++n) words[n] &= here.at[1][1] & wanted_[n];
        body(x, words);
    }
}

std::vector<std::int64_t> PlaneSweeps::count() {
    runtime::for_chunks(chunks_, [&](std::size_t chunk, std::size_t begin, std::size_t end) {
        std::array<std::int64_t, kSteps> totals{};
        for_blocks(begin, end, [&](std::uint32_t block) {
            look_around(block);
            for_planes(block, [&](std::size_t, auto const& words) {
                for (std::size_t n = 0; n < kSteps; ++n) totals[n] += std::popcount(words[n]);
            });
        });
        for (std::size_t n = 0; n < kSteps; ++n) {
            if (wanted_[n] != 0) places_.of(chunk)[group_[n]] = totals[n];
        }
    });
    return places_.totals();
}

void PlaneSweeps::write(KernelMapPairs& pairs) {
    auto const offsets = pairs.offsets.as<std::int64_t>();
    runtime::for_chunks(chunks_, [&](std::size_t chunk, std::size_t begin, std::size_t end) {
        std::int64_t const* const places = places_.places(chunk, offsets);
        std::array<std::int64_t, kSteps> next{};
        std::array<std::uint16_t, kSteps> corner{};
        for (std::size_t n = 0; n < kSteps; ++n) {
            if (wanted_[n] != 0) next[n] = places[group_[n]];
            corner[n] = static_cast<std::uint16_t>((8 + step_of(n).y) * 32 + 8 + step_of(n).z);
        }
        PairWriter<StepPairs> writer(pairs, StepPairs(blocks_, next.data()));
        for_blocks(begin, end, [&](std::uint32_t block) {
            for_planes(block, [&](std::size_t x, auto const& words) {
                std::uint64_t const own = blocks_.plane(block, x);
                std::uint32_t const first = blocks_.first(block, x);
                std::array<std::uint8_t, kSteps> meeting;
                std::size_t const count = list_filled(words.data(), meeting);
                for (std::size_t m = 0; m < count; ++m) {
                    std::uint8_t const n = meeting[m];
                    std::size_t const back = n < 9 ? 1 : 0;
                    writer.add({words[n], own, near(block)[x < back ? 0 : 1].data(), first,
                                corner[n], static_cast<std::uint8_t>((x - back) % kBlockSide), n});
                }
            });
        });
        writer.flush();
    });
}

}  // namespace tensorhash::coords
