// radius_search and knn_search against brute force, on 1, 2 and 8 threads.
#include "tensorhash/coords/neighbours.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "coords/neighbours/cell_grid.hpp"
#include "support/fixtures.hpp"
#include "tensorhash/error.hpp"

namespace {

using tensorhash::Tensor;
using tensorhash::coords::Cloud;
using tensorhash::coords::knn_search;
using tensorhash::coords::Neighbors;
using tensorhash::coords::radius_search;

constexpr std::size_t kAxes = 3;

struct Rows {
    std::vector<double> values;
    std::vector<std::int64_t> batch;

    std::size_t count() const { return batch.size(); }
    Cloud cloud() const {
        Tensor const points =
            Tensor::from(values, {static_cast<std::int64_t>(count()), std::int64_t{kAxes}});
        return {points, Tensor::from(batch)};
    }
};

/// Half of the points lie on a lattice, for ties and points exactly at the radius; one is far away.
Rows random_rows(std::size_t count, unsigned seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> anywhere(-1, 1);
    std::uniform_int_distribution<int> lattice(-4, 4);
    std::uniform_int_distribution<int> batch(0, 2);
    Rows rows;
    for (std::size_t i = 0; i < count * kAxes; ++i) {
        rows.values.push_back(i / kAxes % 2 == 0 ? anywhere(random) : 0.25 * lattice(random));
    }
    for (std::size_t i = 0; i < count; ++i) rows.batch.push_back(batch(random));
    std::fill_n(rows.values.begin() + 3, 3, 1e17);
    return rows;
}

struct Expected {
    std::vector<std::int64_t> indices;
    std::vector<double> distances;
    std::vector<std::int64_t> offsets{0};
};

Expected brute_force(Rows const& points, Rows const& queries, double radius, std::size_t most) {
    Expected out;
    for (std::size_t q = 0; q < queries.count(); ++q) {
        std::vector<std::pair<double, std::int64_t>> found;
        for (std::size_t p = 0; p < points.count(); ++p) {
            double squared = 0;
            for (std::size_t axis = 0; axis < kAxes; ++axis) {
                double const d = queries.values[q * kAxes + axis] - points.values[p * kAxes + axis];
                squared += d * d;
            }
            if (points.batch[p] == queries.batch[q] && std::sqrt(squared) <= radius) {
                found.emplace_back(squared, static_cast<std::int64_t>(p));
            }
        }
        std::sort(found.begin(), found.end());
        found.resize(std::min(found.size(), most));
        for (auto const& [squared, row] : found) {
            out.indices.push_back(row);
            out.distances.push_back(std::sqrt(squared));
        }
        out.offsets.push_back(static_cast<std::int64_t>(out.indices.size()));
    }
    return out;
}

template <class T>
std::vector<T> values(Tensor const& tensor) {
    auto const span = tensor.as<T>();
    return {span.begin(), span.end()};
}

void expect_same(Neighbors const& found, Expected const& expected) {
    EXPECT_EQ(values<std::int64_t>(found.offsets), expected.offsets);
    EXPECT_EQ(values<std::int64_t>(found.indices), expected.indices);
    EXPECT_EQ(values<double>(found.distances), expected.distances);
}

constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();

class NeighboursOverThreads : public th_test::OverThreads {};
TH_OVER_THREADS(NeighboursOverThreads);

TEST_P(NeighboursOverThreads, within_a_radius_are_those_of_brute_force) {
    Rows const points = random_rows(500, 1);
    Rows const queries = random_rows(700, 2);
    for (double const radius : {0.0, 1e-12, 0.25, 0.5}) {
        expect_same(radius_search(points.cloud(), queries.cloud(), radius),
                    brute_force(points, queries, radius, kAll));
    }
    expect_same(radius_search(points.cloud(), queries.cloud(), 0.5, 3),
                brute_force(points, queries, 0.5, 3));
}

TEST_P(NeighboursOverThreads, the_nearest_are_those_of_brute_force) {
    Rows const points = random_rows(500, 3);
    Rows const queries = random_rows(700, 4);
    for (std::int64_t const k : {0, 1, 7, 900}) {
        expect_same(knn_search(points.cloud(), queries.cloud(), k),
                    brute_force(points, queries, HUGE_VAL, static_cast<std::size_t>(k)));
    }
}

TEST(Neighbours, cells_are_numbered_without_a_gap_or_an_overflow) {
    using tensorhash::coords::cell_number;
    constexpr double whole = 0x1p53;
    EXPECT_EQ(cell_number(-0.0), 0);
    EXPECT_EQ(cell_number(whole), std::int64_t{1} << 53);
    for (double const cell : {whole, 0x1p60, 1e30, 1e300}) {
        double const next = std::nextafter(cell, HUGE_VAL);
        EXPECT_EQ(cell_number(next), cell_number(cell) + 1);
        EXPECT_EQ(cell_number(-next), cell_number(-cell) - 1);
    }
    EXPECT_LT(cell_number(1e308), std::numeric_limits<std::int64_t>::max());
}

TEST(Neighbours, a_batch_on_one_side_only_is_refused) {
    Rows const rows = random_rows(4, 5);
    Cloud const bare{rows.cloud().points};
    EXPECT_THROW(knn_search(rows.cloud(), bare, 1), tensorhash::ValueError);
    EXPECT_THROW(radius_search(bare, rows.cloud(), 1), tensorhash::ValueError);
    EXPECT_THROW(radius_search(bare, bare, -1), tensorhash::ValueError);
    EXPECT_THROW(knn_search(bare, bare, -1), tensorhash::ValueError);
}

using Cell = std::array<std::int64_t, 4>;  // batch, x, y, z

/// The number of distinct keys that one search gives these cells.
std::size_t distinct_keys(std::vector<Cell> const& cells) {
    Cloud const cloud{Tensor::from(std::vector<double>{1, 2, 3}, {1, 3}),
                      Tensor::from(std::vector<std::int64_t>{0})};
    tensorhash::coords::SearchSpace const space(cloud, cloud);
    tensorhash::coords::CellGrid const grid(space.points, space.scale);
    std::set<std::pair<std::int32_t, std::int32_t>> found;
    for (auto const& [batch, x, y, z] : cells) {
        std::array<double, 3> const middle = {(static_cast<double>(x) + 0.5) * space.scale,
                                              (static_cast<double>(y) + 0.5) * space.scale,
                                              (static_cast<double>(z) + 0.5) * space.scale};
        tensorhash::coords::CellKeys keys;
        grid.add_window(middle.data(), batch, keys);
        std::int32_t const* const key = keys.rows() + keys.size() / 2 * 2;
        found.emplace(key[0], key[1]);
    }
    return found.size();
}

TEST(NeighbourCells, no_cells_can_be_chosen_to_share_a_key) {
    // If a key were a sum of public multiples of the coordinates, mixed with a secret, all these
    // cells would share one.
    std::vector<Cell> sums;
    for (std::int64_t i = 0; i < 1000; ++i) {
        std::int64_t const x = i % 10, y = i / 10 % 10, z = i / 100;
        std::uint64_t const sum = static_cast<std::uint64_t>(x) * 0x9e3779b97f4a7c15u +
                                  static_cast<std::uint64_t>(y) * 0xc2b2ae3d27d4eb4fu +
                                  static_cast<std::uint64_t>(z) * 0x165667b19e3779f9u;
        std::uint64_t const batch =
            std::uint64_t{0} - sum * tensorhash::step::inverse_of(0xd6e8feb86659fd93u);
        sums.push_back({static_cast<std::int64_t>(batch), x, y, z});
    }
    EXPECT_EQ(distinct_keys(sums), sums.size());
    // All coordinates are multiples of 2^51: in any sum of their multiples, secret or not, the low
    // 51 bits are zero.
    std::vector<Cell> powers;
    for (std::int64_t i = 0; i < 4096; ++i) {
        auto const batch = static_cast<std::int64_t>(static_cast<std::uint64_t>(i / 16) << 56);
        powers.push_back({batch, (i % 4) << 51, (i / 4 % 4) << 51, 0});
    }
    EXPECT_EQ(distinct_keys(powers), powers.size());
}

TEST(NeighbourCells, a_cell_with_two_keys_in_a_window_is_visited_once) {
    std::vector<std::int32_t> const window = {-1, 5, 69, 5, -1, 7, 69, 133, 5};
    std::vector<std::size_t> visited;
    tensorhash::coords::visit_once(window, [&](std::size_t cell) { visited.push_back(cell); });
    EXPECT_EQ(visited, (std::vector<std::size_t>{5, 69, 7, 133}));
}

}  // namespace
