// Bodies of flat tables and kernel maps, against a std::map and against all pairs.
#include "device/kernel_map.hpp"
// The device's headers come first: they choose the form of the steps.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <map>
#include <vector>

#include "device/lives.hpp"

namespace th_test {
namespace {

namespace device = tensorhash::device;
namespace step = tensorhash::step;
using Coord = std::array<std::int32_t, 4>;

std::int32_t between(Random& random, std::int32_t low, std::int32_t high) {
    return low +
           static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(high - low + 1)));
}

/// Some of them have no key.
Coord random_coord(Random& random) {
    return {between(random, 0, 1), between(random, -6, 6), between(random, -6, 6),
            random.one_in(40) ? 1 << 20 : between(random, 0, 3)};
}

/// A flat table of rows on the device.
struct FlatTable {
    OnDevice<step::FlatSlot> slots;
    OnDevice<device::FlatState> state;
    device::FlatView view;

    FlatTable(FiberQueue& queue, std::uint32_t size, bool double_hash)
        : slots(queue, size), state(queue, 1), view{slots.data(), size - 1, 0, double_hash} {
        queue.fill(state.data(), 0, sizeof(device::FlatState));
        queue.launch(size, device::ClearFlat{view});
    }
    void claim(FiberQueue& queue, OnDevice<std::int32_t> const& coords, std::uint32_t rows) {
        queue.launch(rows, device::ClaimFlat{view, coords.data(), 0, state.data(), rows});
    }
};

OnDevice<std::int32_t> on_device(FiberQueue& queue, std::vector<Coord> const& coords) {
    return {queue, coords.data(), coords.size() * 4};
}

class Flat : public testing::TestWithParam<bool> {};

TEST_P(Flat, keeps_the_first_row_of_each_coordinate) {
    for (std::uint64_t seed = 1; seed <= seeds(3); ++seed) {
        Random random(seed);
        FiberQueue queue({.seed = seed});
        constexpr std::uint32_t kRows = 400;
        std::vector<Coord> given(kRows);
        std::vector<Coord> asked(kRows);
        std::generate(given.begin(), given.end(), [&] { return random_coord(random); });
        std::generate(asked.begin(), asked.end(), [&] { return random_coord(random); });
        std::map<Coord, std::uint32_t> wanted;
        for (std::uint32_t row = 0; row < kRows; ++row) {
            if (given[row][3] < step::kCoordMax) {
                wanted.try_emplace(given[row], row);
            }
        }
        FlatTable table(queue, std::bit_ceil(2 * kRows), GetParam());
        table.claim(queue, on_device(queue, given), kRows);
        device::FlatState const state = table.state.read()[0];
        EXPECT_EQ(state.claimed, wanted.size());
        EXPECT_EQ(state.full, 0u);
        EXPECT_EQ(state.out_of_range, 1u);

        auto const questions = on_device(queue, asked);
        OnDevice<std::uint32_t> const found(queue, kRows);
        auto const expect_found = [&](char const* how) {
            auto const answers = found.read();
            for (std::uint32_t row = 0; row < kRows; ++row) {
                auto const at = wanted.find(asked[row]);
                EXPECT_EQ(answers[row], at == wanted.end() ? step::kNoRow : at->second)
                    << how << ", seed " << seed << ", row " << row;
            }
            queue.fill(found.data(), 0xee, kRows * 4);
        };
        queue.launch(kRows, device::FindFlat{table.view, questions.data(), table.state.data(),
                                             found.data(), kRows});
        expect_found("one thread per row");
        if (!GetParam()) {
            queue.launch(kRows, device::FindFlatByTile<4>{table.view, questions.data(),
                                                          table.state.data(), found.data(), kRows});
            expect_found("four lanes per row");
            queue.launch(kRows, device::FindFlatByTile<8>{table.view, questions.data(),
                                                          table.state.data(), found.data(), kRows});
            expect_found("eight lanes per row");
        }
    }
}

TEST_P(Flat, says_that_it_is_full) {
    FiberQueue queue;
    std::vector<Coord> given(9);
    for (std::int32_t i = 0; i < 9; ++i) {
        given[static_cast<std::size_t>(i)] = {0, i, 0, 0};
    }
    FlatTable table(queue, 8, GetParam());
    auto const coords = on_device(queue, given);
    table.claim(queue, coords, 8);
    EXPECT_EQ(table.state.read()[0].full, 0u);
    table.claim(queue, coords, 9);
    EXPECT_EQ(table.state.read()[0].full, 1u);
    EXPECT_EQ(table.state.read()[0].claimed, 8u);
}

TEST(Flat, a_tile_searches_a_full_table_that_is_smaller_than_itself) {
    FiberQueue queue;
    std::vector<Coord> const given{{0, 1, 0, 0}, {0, 2, 0, 0}, {0, 3, 0, 0}, {0, 4, 0, 0}};
    std::vector<Coord> const asked{{0, 4, 0, 0}, {0, 5, 0, 0}, {0, 1, 0, 0}};
    FlatTable table(queue, 4, false);
    table.claim(queue, on_device(queue, given), 4);
    OnDevice<std::uint32_t> const found(queue, 3);
    queue.launch(3, device::FindFlatByTile<8>{table.view, on_device(queue, asked).data(),
                                              table.state.data(), found.data(), 3});
    EXPECT_EQ(found.read(), (std::vector<std::uint32_t>{3, step::kNoRow, 0}));
}

INSTANTIATE_TEST_SUITE_P(Probes, Flat, testing::Bool(),
                         [](auto const& p) { return p.param ? "DoubleHash" : "Buckets"; });

/// The pairs of all offsets, by asking a std::map for every query.
struct Pairs {
    std::vector<std::int32_t> in;
    std::vector<std::int32_t> out;
    std::vector<std::int64_t> begins{0};

    Pairs(std::vector<Coord> const& voxels, std::vector<Coord> const& queries,
          std::vector<Coord> const& offsets, Coord const& scale) {
        std::map<Coord, std::int32_t> row_of;
        for (std::size_t i = 0; i < voxels.size(); ++i) {
            row_of.try_emplace(voxels[i], static_cast<std::int32_t>(i));
        }
        for (Coord const& o : offsets) {
            for (std::size_t q = 0; q < queries.size(); ++q) {
                Coord moved;
                for (std::size_t c = 0; c < 4; ++c) {
                    moved[c] = queries[q][c] * scale[c] + o[c];
                }
                if (auto const at = row_of.find(moved); at != row_of.end()) {
                    in.push_back(at->second);
                    out.push_back(static_cast<std::int32_t>(q));
                }
            }
            begins.push_back(static_cast<std::int64_t>(in.size()));
        }
    }
};

std::vector<Coord> cube(std::int32_t half) {
    std::vector<Coord> offsets;
    for (std::int32_t x = -half; x <= half; ++x) {
        for (std::int32_t y = -half; y <= half; ++y) {
            for (std::int32_t z = -half; z <= half; ++z) {
                offsets.push_back({0, x, y, z});
            }
        }
    }
    return offsets;
}

struct MapCase {
    std::int32_t half;    // of the kernel
    std::int32_t stride;  // of the queries
    bool coarse;
};

void expect_pairs(MapCase const& map, std::uint64_t seed) {
    Random random(seed);
    FiberQueue queue({.seed = seed});
    std::vector<Coord> voxels(300);
    std::vector<Coord> queries(130 + seed * 100 % 300);
    auto const voxel = [&] {
        return Coord{between(random, 0, 1), between(random, -5, 5), between(random, -5, 5),
                     between(random, -5, 5)};
    };
    std::generate(voxels.begin(), voxels.end(), voxel);
    std::generate(queries.begin(), queries.end(), voxel);
    auto const offsets = cube(map.half);
    Coord const scale{1, map.stride, map.stride, map.stride};
    Pairs const wanted(voxels, queries, offsets, scale);

    auto const rows = static_cast<std::uint32_t>(queries.size());
    auto const voxel_rows = static_cast<std::uint32_t>(voxels.size());
    device::PairGrid const grid{rows, static_cast<std::uint32_t>(offsets.size())};
    auto const coords = on_device(queue, voxels);
    auto const asked = on_device(queue, queries);
    auto const shifts = on_device(queue, offsets);
    FlatTable table(queue, 1024, false);
    table.claim(queue, coords, voxel_rows);

    constexpr std::uint32_t kBits = 2;
    FlatTable cells(queue, 1024, false);
    OnDevice<std::uint32_t> const masks(queue, rows);
    if (map.coarse) {
        OnDevice<std::int32_t> const cell_coords(queue, voxel_rows * 4);
        queue.launch(voxel_rows * 4,
                     device::ToCells{coords.data(), cell_coords.data(), kBits, voxel_rows});
        cells.claim(queue, cell_coords, voxel_rows);
        queue.launch(rows, device::CoarseMasks{cells.view, cells.state.data(), asked.data(),
                                               masks.data(), kBits, rows});
    }
    OnDevice<std::uint32_t> const found(queue, std::uint64_t{rows} * grid.offsets);
    OnDevice<std::uint64_t> const counts(queue, grid.segments());
    OnDevice<std::uint64_t> const total(queue, 1);
    queue.launch(grid.size(), device::ProbeOffsets{table.view,
                                                   table.state.data(),
                                                   asked.data(),
                                                   shifts.data(),
                                                   {1, map.stride, map.stride, map.stride},
                                                   map.coarse ? masks.data() : nullptr,
                                                   kBits,
                                                   found.data(),
                                                   counts.data(),
                                                   grid});
    queue.scan(counts.data(), grid.segments(), total.data());
    OnDevice<std::int64_t> const begins(queue, grid.offsets + 1);
    queue.launch(grid.offsets + 1,
                 device::WriteOffsets{counts.data(), total.data(), begins.data(), grid});
    ASSERT_EQ(begins.read(), wanted.begins) << "seed " << seed;
    OnDevice<std::int32_t> const in(queue, wanted.in.size());
    OnDevice<std::int32_t> const out(queue, wanted.in.size());
    queue.launch(grid.size(),
                 device::WritePairs{found.data(), counts.data(), in.data(), out.data(), grid});
    EXPECT_EQ(in.read(), wanted.in) << "seed " << seed;
    EXPECT_EQ(out.read(), wanted.out) << "seed " << seed;
}

TEST(KernelMap, flat_pairs_are_all_pairs) {
    for (std::uint64_t seed = 1; seed <= seeds(2); ++seed) {
        expect_pairs({1, 1, false}, seed);
        expect_pairs({1, 2, false}, seed);
    }
}

TEST(KernelMap, pairs_pruned_by_coarse_cells_are_all_pairs) {
    for (std::uint64_t seed = 1; seed <= seeds(1); ++seed) {
        expect_pairs({2, 1, true}, seed);
    }
}

}  // namespace
}  // namespace th_test
