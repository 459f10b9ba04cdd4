// Voxel reductions, expansion and striding against plain loops, on 1, 2 and 8 threads.
#include "tensorhash/coords/voxels.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "support/coords.hpp"
#include "tensorhash/coords/ops.hpp"
#include "tensorhash/error.hpp"

namespace {

using tensorhash::Dtype;
using tensorhash::Tensor;
using tensorhash::ValueError;
using th_test::on_test_device;
namespace coords = tensorhash::coords;

class VoxelsOverThreads : public th_test::OverThreads {};
TH_OVER_THREADS(VoxelsOverThreads);

TEST_P(VoxelsOverThreads, sums_and_means_are_those_of_a_loop) {
    constexpr std::int64_t rows = 30000;
    std::mt19937 random(1);
    std::normal_distribution<double> normal(0, 3);
    std::vector<double> points(rows * 2);
    std::vector<std::int32_t> weights(rows);
    for (double& value : points) value = normal(random);
    for (std::int32_t& value : weights) value = static_cast<std::int32_t>(random());
    Tensor const cloud = on_test_device(Tensor::from(points, {rows, 2}));
    Tensor const keys = coords::voxel_coords(cloud, {0.5, 0.25}, {0.1, 0}, {}, Dtype::Int32);
    auto const found = tensorhash::unique(keys);
    Tensor const distinct = found.rows.to({});
    auto const cells = distinct.as<std::int32_t>();
    std::map<std::pair<double, double>, std::vector<std::int32_t>> expected;
    for (std::size_t i = 0; i < rows; ++i) {
        expected[{std::floor((points[2 * i] - 0.1) / 0.5), std::floor(points[2 * i + 1] / 0.25)}]
            .push_back(weights[i]);
    }
    std::int64_t const voxels = found.rows.shape()[0];
    ASSERT_EQ(static_cast<std::size_t>(voxels), expected.size());
    Tensor const all = on_test_device(Tensor::from(weights));
    auto const reduced = [&](coords::VoxelReduce reduce) {
        return reduce_voxels(all, found.inverse, voxels, reduce).to({});
    };
    Tensor const sums = reduced(coords::VoxelReduce::Sum);
    Tensor const means = reduced(coords::VoxelReduce::Mean);
    Tensor const last = reduced(coords::VoxelReduce::Last);
    for (std::size_t v = 0; v < expected.size(); ++v) {
        auto const& group = expected.at({cells[2 * v], cells[2 * v + 1]});
        std::int64_t sum = 0;
        for (std::int64_t const weight : group) sum += weight;
        EXPECT_EQ(sums.as<std::int64_t>()[v], sum);
        EXPECT_DOUBLE_EQ(means.as<double>()[v],
                         static_cast<double>(sum) / static_cast<double>(group.size()));
        EXPECT_EQ(last.as<std::int32_t>()[v], group.back());
    }
}

TEST_P(VoxelsOverThreads, expanding_gives_every_sum_once_and_batches_in_order) {
    constexpr std::int64_t rows = 3000;
    std::mt19937 random(2);
    std::uniform_int_distribution<std::int32_t> axis(-20, 20);
    std::vector<std::int32_t> values;
    std::set<std::vector<std::int32_t>> expected;
    std::vector<std::int64_t> const offsets{-1, 0, 0, 0, 0, 5};
    for (std::int64_t i = 0; i < rows; ++i) {
        std::vector<std::int32_t> const row{static_cast<std::int32_t>(i % 2), axis(random),
                                            axis(random)};
        values.insert(values.end(), row.begin(), row.end());
        expected.insert({{row[0], row[1] - 1, row[2]}, row, {row[0], row[1], row[2] + 5}});
    }
    Tensor const base = on_test_device(Tensor::from(values, {rows, 3}));
    auto made = coords::expand_coords(base, Tensor::from(offsets, {3, 2}), 2, 3);
    made = {made.coords.to({}), made.offsets.to({})};
    auto const found = made.coords.as<std::int32_t>();
    ASSERT_EQ(made.coords.shape()[0], static_cast<std::int64_t>(expected.size()));
    for (std::size_t i = 0; i < found.size(); i += 3) {
        EXPECT_EQ(expected.erase({found[i], found[i + 1], found[i + 2]}), 1u);
        EXPECT_TRUE(i == 0 || found[i - 3] <= found[i]);
    }
    auto const ends = made.offsets.as<std::int64_t>();
    ASSERT_EQ(ends.size(), 4u);
    EXPECT_EQ(ends[2], ends[3]);  // the third batch is empty
    EXPECT_EQ(ends[3], made.coords.shape()[0]);
}

TEST(Voxels, voxel_numbers_out_of_range_are_refused) {
    Tensor const values = on_test_device(Tensor::from(std::vector<double>{1, 2}));
    auto const reduce = [&](std::vector<std::int64_t> const& inverse, std::int64_t voxels) {
        return reduce_voxels(values, Tensor::from(inverse), voxels, coords::VoxelReduce::Sum)
            .to({});
    };
    Tensor const sum = reduce({0, 0}, 1);
    EXPECT_EQ(sum.as<double>()[0], 3);
    EXPECT_THROW(reduce({0, 1}, 1), ValueError);
    EXPECT_THROW(reduce({0, -1}, 1), ValueError);
    EXPECT_THROW(reduce({0, 0}, 2), ValueError);  // a voxel without a row
    EXPECT_THROW(reduce({0}, 1), ValueError);
}

}  // namespace
