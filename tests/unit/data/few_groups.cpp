// Group-by with few groups, several aggregates at once, on 1, 2 and 8 threads against a plain loop.
#include "data/few_groups.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <vector>

#include "data/values.hpp"
#include "support/fixtures.hpp"
#include "tensorhash/data.hpp"

namespace {

using tensorhash::Dtype;
using tensorhash::Tensor;
namespace data = tensorhash::data;

class FewGroupsOverThreads : public th_test::OverThreads {};
TH_OVER_THREADS(FewGroupsOverThreads);

constexpr std::size_t kRows = 300001;

std::vector<std::int64_t> keys_of(std::uint64_t groups, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<std::int64_t> keys(kRows);
    for (std::int64_t& key : keys) {
        key = static_cast<std::int64_t>(random() % groups * 0x1e3779b97f4a7c15u);
    }
    return keys;
}

std::vector<double> values_with_everything() {
    std::mt19937_64 random(5);
    std::normal_distribution<double> normal(0, 1e6);
    std::vector<double> values(kRows);
    for (double& value : values) {
        value = random() % 50 == 0 ? (random() % 2 == 0 ? -0.0 : 0.0) : normal(random);
    }
    values[12345] = std::numeric_limits<double>::quiet_NaN();
    return values;
}

/// Sum, count, mean, min and max of each group, in order of first occurrence.
struct Five {
    std::vector<std::int64_t> keys, first_rows, counts;
    std::vector<double> sums, means, least, greatest;
};

Five loop_over(std::vector<std::int64_t> const& keys, std::vector<double> const& values) {
    Five out;
    std::map<std::int64_t, std::size_t> group_of;
    for (std::size_t row = 0; row < keys.size(); ++row) {
        auto const [at, is_new] = group_of.try_emplace(keys[row], out.keys.size());
        std::size_t const group = at->second;
        double const value = values[row];
        if (is_new) {
            out.keys.push_back(keys[row]);
            out.first_rows.push_back(static_cast<std::int64_t>(row));
            out.counts.push_back(0);
            out.sums.push_back(-0.0);
            out.least.push_back(value);
            out.greatest.push_back(value);
        }
        out.counts[group] += 1;
        out.sums[group] += value;
        bool const is_settled = std::isnan(out.least[group]);
        if (!is_settled && (std::isnan(value) || value < out.least[group])) {
            out.least[group] = value;
        }
        if (!is_settled && (std::isnan(value) || value > out.greatest[group])) {
            out.greatest[group] = value;
        }
    }
    for (std::size_t i = 0; i < out.sums.size(); ++i) {
        out.means.push_back(out.sums[i] / static_cast<double>(out.counts[i]));
    }
    return out;
}

template <class T>
void expect_bits(Tensor const& got, std::vector<T> const& expected) {
    auto const span = got.as<T>();
    ASSERT_EQ(span.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
        ASSERT_EQ(std::bit_cast<std::uint64_t>(span[i]), std::bit_cast<std::uint64_t>(expected[i]))
            << i;
    }
}

std::vector<data::Aggregation> five_of(Tensor const& values) {
    using enum data::Aggregate;
    return {{Sum, values}, {Count}, {Mean, values}, {Min, values}, {Max, values}};
}

TEST_P(FewGroupsOverThreads, five_aggregates_at_once_have_the_bits_of_a_loop) {
    std::vector<double> const values = values_with_everything();
    for (std::uint64_t const groups : {1u, 3u, 1000u, 4000u, 6000u, 100000u}) {
        std::vector<std::int64_t> const keys = keys_of(groups, groups);
        Five const expected = loop_over(keys, values);
        auto const got = data::group_by(Tensor::from(keys), five_of(Tensor::from(values)));
        expect_bits(got.keys, expected.keys);
        expect_bits(got.first_rows, expected.first_rows);
        expect_bits(got.columns[0], expected.sums);
        expect_bits(got.columns[1], expected.counts);
        expect_bits(got.columns[2], expected.means);
        expect_bits(got.columns[3], expected.least);
        expect_bits(got.columns[4], expected.greatest);
    }
}

TEST(FewGroups, sum_count_mean_min_and_max_share_one_column_and_four_folds) {
    using enum data::Aggregate;
    data::Plan const plan({{Dtype::Float64, {}}},
                          {{Sum, 0}, {Count, data::kNoColumn}, {Mean, 0}, {Min, 0}, {Max, 0}});
    EXPECT_EQ(plan.columns(), 1u);
    EXPECT_EQ(plan.folds().size(), 4u);
}

/// Nearly all rows have few keys, but there are many.
std::vector<std::int64_t> keys_that_deceive() {
    std::vector<std::int64_t> keys = keys_of(10, 1);
    for (std::size_t row = kRows - 1; row > kRows - 9000; row -= 1) {
        keys[row] = static_cast<std::int64_t>(row * 7919);
    }
    return keys;
}

TEST_P(FewGroupsOverThreads, more_groups_than_expected_are_found_in_another_way) {
    std::vector<double> const values = values_with_everything();
    std::vector<std::int64_t> const keys = keys_that_deceive();
    Five const expected = loop_over(keys, values);
    auto const got = data::group_by(Tensor::from(keys), five_of(Tensor::from(values)));
    expect_bits(got.first_rows, expected.first_rows);
    expect_bits(got.columns[0], expected.sums);
    auto const numbered =
        data::group_by(Tensor::from(keys), {{data::Aggregate::NUnique, Tensor::from(keys)}});
    expect_bits(numbered.first_rows, expected.first_rows);
}

TEST_P(FewGroupsOverThreads, gives_up_only_above_the_limit) {
    Tensor const keys = Tensor::from(keys_of(1000, 2));
    data::KeyRows const rows = data::check_keys(keys, "keys");
    Five const expected = loop_over(keys_of(1000, 2), std::vector<double>(kRows));
    for (std::size_t const most : {10u, 999u}) {
        EXPECT_FALSE(data::number_few(rows, {}, 1000, most));
    }
    for (double const estimate : {1.0, 1000.0}) {
        auto const found = data::number_few(rows, {}, estimate, 1000);
        ASSERT_TRUE(found);
        expect_bits(found->first_rows, expected.first_rows);
        std::map<std::int64_t, std::uint32_t> number_of;
        for (std::uint32_t i = 0; i < expected.keys.size(); ++i) number_of[expected.keys[i]] = i;
        auto const all = keys.as<std::int64_t>();
        for (std::size_t row = 0; row < kRows; ++row) {
            ASSERT_EQ(found->of_rows()[row], number_of[all[row]]);
        }
    }
}

}  // namespace
