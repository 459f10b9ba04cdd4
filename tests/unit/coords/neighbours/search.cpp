// radius_search and knn_search against brute force, on 1, 2 and 8 threads.
#include "tensorhash/coords/neighbours.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "support/coords.hpp"
#include "tensorhash/error.hpp"

namespace {

using tensorhash::Tensor;
using tensorhash::coords::Cloud;
using tensorhash::coords::knn_search;
using tensorhash::coords::Neighbors;
using tensorhash::coords::radius_search;

struct Rows {
    std::size_t axes;
    std::vector<double> values;
    std::vector<std::int64_t> batch;

    std::size_t count() const { return batch.size(); }
    Cloud cloud() const {
        Tensor const points = Tensor::from(
            values, {static_cast<std::int64_t>(count()), static_cast<std::int64_t>(axes)});
        return {points, Tensor::from(batch)};
    }
    /// The cloud on the device under test.
    Cloud on_device() const {
        Cloud const here = cloud();
        return {th_test::on_test_device(here.points), th_test::on_test_device(*here.batch)};
    }
};

/// Half of the points lie on a lattice, for ties and points exactly at the radius; one is far away.
Rows random_rows(std::size_t count, unsigned seed, std::size_t axes = 3) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> anywhere(-1, 1);
    std::uniform_int_distribution<int> lattice(-4, 4);
    std::uniform_int_distribution<int> batch(0, 2);
    Rows rows{axes, {}, {}};
    for (std::size_t i = 0; i < count * axes; ++i) {
        rows.values.push_back(i / axes % 2 == 0 ? anywhere(random) : 0.25 * lattice(random));
    }
    for (std::size_t i = 0; i < count; ++i) rows.batch.push_back(batch(random));
    std::fill_n(rows.values.begin(), axes, 1e17);
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
            for (std::size_t axis = 0; axis < points.axes; ++axis) {
                double const d =
                    queries.values[q * points.axes + axis] - points.values[p * points.axes + axis];
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
    Tensor const here = tensor.to({});
    auto const span = here.as<T>();
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
        expect_same(radius_search(points.on_device(), queries.on_device(), radius),
                    brute_force(points, queries, radius, kAll));
    }
    for (std::size_t const most : {0, 1, 3, 16, 17}) {
        expect_same(radius_search(points.on_device(), queries.on_device(), 0.5,
                                  static_cast<std::int64_t>(most)),
                    brute_force(points, queries, 0.5, most));
    }
}

TEST_P(NeighboursOverThreads, the_nearest_are_those_of_brute_force) {
    Rows const points = random_rows(500, 3);
    Rows const queries = random_rows(700, 4);
    for (std::int64_t const k : {0, 1, 7, 900}) {
        expect_same(knn_search(points.cloud(), queries.cloud(), k),
                    brute_force(points, queries, HUGE_VAL, static_cast<std::size_t>(k)));
    }
}

void expect_both_searches(Rows const& points, Rows const& queries, double radius) {
    for (std::int64_t const k : {3, 8, 11, 40}) {
        expect_same(knn_search(points.cloud(), queries.cloud(), k),
                    brute_force(points, queries, HUGE_VAL, static_cast<std::size_t>(k)));
    }
    expect_same(radius_search(points.on_device(), queries.on_device(), radius),
                brute_force(points, queries, radius, kAll));
}

TEST_P(NeighboursOverThreads, any_number_of_axes) {
    for (std::size_t const axes : {1, 2, 4, 7}) {
        expect_both_searches(random_rows(300, 5, axes), random_rows(100, 6, axes), 0.5);
    }
}

TEST_P(NeighboursOverThreads, coincident_points_come_by_row) {
    Rows points{3, std::vector<double>(3 * 2000, 0.5), std::vector<std::int64_t>(2000, 0)};
    Rows queries = random_rows(20, 7);
    std::fill(queries.batch.begin(), queries.batch.end(), 0);
    expect_both_searches(points, queries, 0.75);
    for (std::size_t i = 0; i < points.values.size(); i += 7) points.values[i] = 0.25;
    expect_both_searches(points, queries, 0.75);
}

TEST_P(NeighboursOverThreads, more_batches_than_threads) {
    Rows points = random_rows(3000, 8);
    Rows queries = random_rows(100, 9);
    for (std::size_t i = 0; i < points.count(); ++i) points.batch[i] = static_cast<int>(i % 700);
    for (std::size_t i = 0; i < queries.count(); ++i) queries.batch[i] = static_cast<int>(i * 9);
    expect_both_searches(points, queries, 0.5);
}

// Coordinates double from row to row, and every sample falls on the smallest of its range: each
// sampled split takes a few points off a range of thousands.
TEST_P(NeighboursOverThreads, splits_at_unlucky_samples_stay_balanced) {
    Rows points{1, {}, std::vector<std::int64_t>(20000, 0)};
    for (std::size_t i = 0; i < points.count(); ++i) {
        points.values.push_back(std::ldexp(1.0, static_cast<int>(i % 2 == 0 ? 0 : i / 32)));
    }
    Rows queries{1, {0.5, 1.0, 1e9, 1e100, 1e180}, std::vector<std::int64_t>(5, 0)};
    EXPECT_THROW(knn_search(points.cloud(), queries.cloud(), 3), tensorhash::ValueError);
    for (double& value : points.values) value = std::min(value, 1e100);
    queries.values.back() = 1e99;
    expect_both_searches(points, queries, 1.5);
}

TEST_P(NeighboursOverThreads, a_cloud_that_several_threads_build) {
    std::mt19937 random(10);
    std::normal_distribution<double> anywhere;
    Rows points{3, {}, std::vector<std::int64_t>(40000, 0)};
    for (std::size_t i = 0; i < 3 * points.count(); ++i) points.values.push_back(anywhere(random));
    Rows queries{3, {}, std::vector<std::int64_t>(30, 0)};
    for (std::size_t i = 0; i < 90; ++i) queries.values.push_back(anywhere(random));
    expect_both_searches(points, queries, 0.2);
}

TEST(Neighbours, a_batch_on_one_side_only_is_refused) {
    Rows const rows = random_rows(4, 5);
    Cloud const bare{rows.cloud().points};
    EXPECT_THROW(knn_search(rows.cloud(), bare, 1), tensorhash::ValueError);
    EXPECT_THROW(radius_search(bare, rows.cloud(), 1), tensorhash::ValueError);
    EXPECT_THROW(radius_search(bare, bare, -1), tensorhash::ValueError);
    EXPECT_THROW(knn_search(bare, bare, -1), tensorhash::ValueError);
}

}  // namespace
