// Bodies of flat tables, against a std::map.
#include "device/row_index.hpp"
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

    FlatTable(TestQueue& queue, std::uint32_t size, bool double_hash)
        : slots(queue, size), state(queue, 1), view{slots.data(), size - 1, 0, double_hash} {
        queue.fill(state.data(), 0, sizeof(device::FlatState));
        queue.launch(size, device::ClearFlat{view});
    }
    void claim(TestQueue& queue, OnDevice<std::int32_t> const& coords, std::uint32_t rows) {
        queue.launch(rows, device::ClaimFlat{view, coords.data(), 4, 0, state.data(), rows});
    }
};

OnDevice<std::int32_t> on_device(TestQueue& queue, std::vector<Coord> const& coords) {
    return {queue, coords.data(), coords.size() * 4};
}

class Flat : public testing::TestWithParam<bool> {};

TEST_P(Flat, keeps_the_first_row_of_each_coordinate) {
    for (std::uint64_t seed = 1; seed <= seeds(3); ++seed) {
        Random random(seed);
        TestQueue queue({.seed = seed});
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
        device::RowsView const queries{questions.data(), 4, false};
        device::FlatState const in_range{0, state.longest, 0, 0};
        OnDevice<device::FlatState> const packed(queue, &in_range, 1);
        device::RowIndexView const index{table.view, packed.data(), {}, nullptr, 4};
        queue.launch(kRows, device::SearchRows{index, queries, found.data(), kRows});
        expect_found("one thread per row");
        if (!GetParam()) {
            queue.launch(kRows, device::FindFlatByTile<4>{table.view, queries, table.state.data(),
                                                          found.data(), kRows});
            expect_found("four lanes per row");
            queue.launch(kRows, device::FindFlatByTile<8>{table.view, queries, table.state.data(),
                                                          found.data(), kRows});
            expect_found("eight lanes per row");
        }
    }
}

TEST_P(Flat, says_that_it_is_full) {
    TestQueue queue;
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
    TestQueue queue;
    std::vector<Coord> const given{{0, 1, 0, 0}, {0, 2, 0, 0}, {0, 3, 0, 0}, {0, 4, 0, 0}};
    std::vector<Coord> const asked{{0, 4, 0, 0}, {0, 5, 0, 0}, {0, 1, 0, 0}};
    FlatTable table(queue, 4, false);
    table.claim(queue, on_device(queue, given), 4);
    OnDevice<std::uint32_t> const found(queue, 3);
    auto const questions = on_device(queue, asked);
    queue.launch(
        3, device::FindFlatByTile<8>{
               table.view, {questions.data(), 4, false}, table.state.data(), found.data(), 3});
    EXPECT_EQ(found.read(), (std::vector<std::uint32_t>{3, step::kNoRow, 0}));
}

INSTANTIATE_TEST_SUITE_P(Probes, Flat, testing::Bool(),
                         [](auto const& p) { return p.param ? "DoubleHash" : "Buckets"; });

}  // namespace
}  // namespace th_test
