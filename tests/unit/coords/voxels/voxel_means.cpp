// The mean of the points of each voxel against a plain loop, bit for bit, on 1, 2 and 8 threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "coords/voxels/voxels.hpp"
#include "support/coords.hpp"
#include "tensorhash/coords/voxels.hpp"
#include "tensorhash/error.hpp"

namespace {

using tensorhash::Shape;
using tensorhash::Tensor;
using tensorhash::ValueError;
using th_test::on_test_device;
namespace coords = tensorhash::coords;

struct Case {
    std::string name;
    std::size_t rows;
    std::size_t axes;
    double width;  // of the cloud
    double size;   // of a voxel
    bool is_one_pass = true;
    double at = 0;  // the middle of the cloud, on every axis
};

/// First point plus mean deviation, kept between the least and the greatest; row by row.
template <class Value>
std::vector<Value> means_of_a_loop(std::vector<Value> const& points, std::size_t axes,
                                   std::vector<double> const& size,
                                   std::vector<double> const& origin) {
    std::map<std::vector<double>, std::size_t> voxels;
    std::vector<std::vector<std::size_t>> rows;
    for (std::size_t row = 0; row < points.size() / axes; ++row) {
        std::vector<double> voxel(axes);
        for (std::size_t axis = 0; axis < axes; ++axis) {
            voxel[axis] = std::floor((points[row * axes + axis] - origin[axis]) / size[axis]);
        }
        auto const [at, fresh] = voxels.insert({voxel, rows.size()});
        if (fresh) rows.emplace_back();
        rows[at->second].push_back(row);
    }
    std::vector<Value> means;
    for (std::vector<std::size_t> const& group : rows) {
        for (std::size_t axis = 0; axis < axes; ++axis) {
            double const first = points[group[0] * axes + axis];
            double low = first, high = first, deviation = 0, sum = 0;
            for (std::size_t const row : group) {
                double const value = points[row * axes + axis];
                low = std::min(low, value);
                high = std::max(high, value);
                deviation += value - first;
                sum += value;
            }
            auto const count = static_cast<double>(group.size());
            double const mean = first + deviation / count;
            means.push_back(static_cast<Value>(std::isfinite(mean) ? std::clamp(mean, low, high)
                                                                   : sum / count));
        }
    }
    return means;
}

template <class Value>
void expect_means(Case const& one) {
    std::mt19937_64 random(one.rows + one.axes);
    std::uniform_real_distribution<double> number(-one.width / 2, one.width / 2);
    std::vector<Value> points(one.rows * one.axes);
    for (Value& value : points) value = static_cast<Value>(one.at + number(random));
    // Zeros of both signs and repeated points.
    for (std::size_t i = 0; one.at == 0 && i + 7 < points.size(); i += 997) {
        points[i] = 0;
        points[i + 3] = -Value(0);
        points[i + 6] = points[0];
    }
    std::vector<double> const size(one.axes, one.size);
    std::vector<double> const origin(one.axes, one.size / 3);
    Shape const shape{static_cast<std::int64_t>(one.rows), static_cast<std::int64_t>(one.axes)};
    Tensor const here = Tensor::from(points, shape);
    EXPECT_EQ(coords::mean_points({here, size, origin}).has_value(), one.is_one_pass);
    Tensor const found = coords::voxel_means(on_test_device(here), size, origin).to({});
    std::vector<Value> const expected = means_of_a_loop(points, one.axes, size, origin);
    ASSERT_EQ(found.dtype(), tensorhash::dtype_of<Value>);
    ASSERT_EQ(found.as<Value>().size(), expected.size());
    EXPECT_EQ(std::memcmp(found.data(), expected.data(), found.bytes()), 0);
}

class VoxelMeansOverThreads : public th_test::OverThreads {};
TH_OVER_THREADS(VoxelMeansOverThreads);

TEST_P(VoxelMeansOverThreads, are_those_of_a_loop) {
    for (Case const& one :
         {Case{"no points", 0, 3, 1, 1, false}, Case{"few points", 500, 3, 10, 1, false},
          Case{"one axis", 150'000, 1, 300, 0.01}, Case{"two axes", 150'000, 2, 100, 0.5},
          Case{"three axes", 150'000, 3, 20, 0.7}, Case{"four axes", 40'000, 4, 5, 0.9, false},
          Case{"one voxel", 80'000, 3, 0.5, 8}, Case{"a voxel per point", 150'000, 3, 1000, 0.01},
          Case{"voxels beyond 21 bits", 40'000, 3, 1000, 0.0001, false},
          Case{"far from the origin", 40'000, 3, 100, 0.5, true, 5e7},
          Case{"where voxels are not every integer", 40'000, 3, 3000, 1, true, 1e18},
          Case{"beyond half of int64", 40'000, 3, 3000, 1, false, 8e18}}) {
        SCOPED_TRACE(one.name);
        expect_means<double>(one);
        expect_means<float>(one);
    }
}

TEST_P(VoxelMeansOverThreads, of_differences_that_overflow_are_the_mean_of_the_sum) {
    std::vector<double> points(3 * 40'000, -0.85e308);
    for (std::size_t i = 0; i < points.size(); ++i) {
        if (i / 3 % 2 == 1) points[i] = 0.85e308;
    }
    Tensor const cloud = on_test_device(Tensor::from(points, {40'000, 3}));
    std::vector<double> const size(3, 1.75e308), origin(3, -0.85e308);
    Tensor const found = coords::voxel_means(cloud, size, origin).to({});
    auto const expected = means_of_a_loop(points, 3, size, origin);
    ASSERT_EQ(found.as<double>().size(), expected.size());
    EXPECT_TRUE(std::isfinite(expected[0]));
    EXPECT_EQ(std::memcmp(found.data(), expected.data(), found.bytes()), 0);
}

// A voxel that leaves its 21 bits would meet the one beside it on the other axis.
TEST_P(VoxelMeansOverThreads, tell_voxels_apart_at_the_ends_of_the_word) {
    constexpr double kReach = 1 << 20;
    for (double const more : {-1, 0, 1}) {
        double const up = kReach + more, down = -kReach - more;
        for (std::vector<double> const& ends :
             {std::vector<double>{0, 0, 0, up, 1, -kReach, 1, up, -kReach, 0},
              std::vector<double>{0, 0, 0, down, -1, kReach - 1, -1, down, down, 0}}) {
            for (double const first : {0.0, 1e9, -1e9}) {
                std::vector<double> points;
                for (std::size_t i = 0; i < 80'000; ++i) points.push_back(first + ends[i % 10]);
                Tensor const cloud = on_test_device(Tensor::from(points, {40'000, 2}));
                std::vector<double> const size(2, 1), origin(2, 0);
                Tensor const found = coords::voxel_means(cloud, size, origin).to({});
                auto const expected = means_of_a_loop(points, 2, size, origin);
                EXPECT_EQ(found.shape(), (Shape{5, 2}));
                ASSERT_EQ(found.as<double>().size(), expected.size());
                EXPECT_EQ(std::memcmp(found.data(), expected.data(), found.bytes()), 0);
            }
        }
    }
}

TEST(VoxelMeans, refuse_what_has_no_voxel) {
    std::vector<double> points(3 * 40'000, 0.5);
    points[70'001] = std::numeric_limits<double>::quiet_NaN();
    std::vector<double> const size(3, 1), origin(3, 0);
    auto const means = [&] {
        return coords::voxel_means(on_test_device(Tensor::from(points, {40'000, 3})), size, origin);
    };
    EXPECT_THROW(means(), ValueError);
    points[70'001] = std::numeric_limits<double>::infinity();
    EXPECT_THROW(means(), ValueError);
    points[70'001] = 1e20;  // beyond int64
    EXPECT_THROW(means(), ValueError);
    points[70'001] = 1;
    EXPECT_EQ(means().shape()[0], 2);
    points[0] = std::numeric_limits<double>::quiet_NaN();
    EXPECT_THROW(means(), ValueError);
    std::fill(points.begin(), points.end(), 1e20);
    EXPECT_THROW(means(), ValueError);
    std::fill(points.begin(), points.end(), 0.5);
    auto const with_size = [&](double by) {
        return coords::voxel_means(on_test_device(Tensor::from(points, {40'000, 3})), {1, by, 1},
                                   origin);
    };
    EXPECT_EQ(with_size(1e-15).shape()[0], 1);
    EXPECT_THROW(with_size(1e-20), ValueError);   // beyond int64
    EXPECT_THROW(with_size(1e-320), ValueError);  // an infinite quotient
}

}  // namespace
