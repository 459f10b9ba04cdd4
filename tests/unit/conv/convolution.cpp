// Convolutions and their gradients against a triple loop in double: channel counts that fill no
// vector, groups, dtypes, maps of every kind, on 1, 2 and 8 threads.
#include "tensorhash/conv.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "conv_oracle.hpp"
#include "support/fixtures.hpp"

namespace th_test::conv {
namespace {

using tensorhash::conv::ConvPlan;
using tensorhash::conv::forward;
using tensorhash::conv::input_gradient;
using tensorhash::conv::weight_gradient;

class ConvolutionOverThreads : public OverThreads {};
TH_OVER_THREADS(ConvolutionOverThreads);

struct Inputs {
    Tensor features;
    Tensor gradient;
    Tensor weight;
};

Inputs inputs_of(Case const& c, Dtype dtype) {
    std::int64_t const offsets = c.map.offsets.size() - 1;
    return {random_tensor({c.map.num_in, c.in}, dtype, 1),
            random_tensor({c.map.num_out, c.out}, dtype, 2),
            random_tensor({offsets, c.in / c.groups, c.out}, dtype, 3)};
}

void check(Case const& c, Dtype dtype = Dtype::Float32) {
    SCOPED_TRACE(std::to_string(c.in) + " to " + std::to_string(c.out) + " channels, " +
                 std::to_string(c.groups) + " groups, " + std::string(name(dtype)));
    auto const [features, gradient, weight] = inputs_of(c, dtype);
    ConvPlan const plan(c.map);
    Tensor const out = forward(plan, features, weight, c.groups);
    EXPECT_EQ(out.shape(), (Shape{c.map.num_out, c.out}));
    EXPECT_EQ(out.dtype(), dtype);
    EXPECT_TRUE(is_near(out, forward_oracle(c, features, weight)));
    Tensor const of_input = input_gradient(plan, gradient, weight, c.groups);
    EXPECT_EQ(of_input.shape(), features.shape());
    EXPECT_TRUE(is_near(of_input, input_oracle(c, gradient, weight)));
    Tensor const of_weight = weight_gradient(plan, features, gradient, c.groups);
    EXPECT_EQ(of_weight.shape(), weight.shape());
    EXPECT_TRUE(is_near(of_weight, weight_oracle(c, features, gradient)));
}

TEST_P(ConvolutionOverThreads, AnyNumberOfChannels) {
    KernelMap const map = random_map({3, 40, 300, 0.03}, 1);
    for (std::int64_t in : {1, 3, 17, 33}) {
        for (std::int64_t out : {1, 3, 17, 33}) check({map, in, out, 1});
    }
    // Whole vectors, several column blocks, and blocks with a rest.
    for (std::int64_t n : {8, 16, 24, 32, 48, 64, 72, 130}) {
        check({map, n, n, 1});
        check({map, 16, n, 1});
        check({map, n, 16, 1});
    }
}

TEST_P(ConvolutionOverThreads, EveryFloatDtype) {
    KernelMap const map = random_map({4, 50, 260, 0.02}, 2);
    for (Dtype dtype : {Dtype::Float64, Dtype::Float16, Dtype::BFloat16}) {
        for (std::int64_t n : {1, 3, 8, 16, 17, 33, 48}) check({map, n, n + 2, 1}, dtype);
        check({map, 16, 16, 1}, dtype);
        check({map, 32, 16, 1}, dtype);
        check({map, 12, 20, 4}, dtype);
    }
}

TEST_P(ConvolutionOverThreads, GroupsSeeOnlyTheirChannels) {
    KernelMap const map = random_map({3, 60, 200, 0.03}, 3);
    check({map, 2, 2, 2});
    check({map, 33, 3, 3});
    check({map, 34, 17, 17});
    check({map, 64, 32, 2});
    check({map, 32, 64, 4});
    check({map, 20, 20, 20});
    check({map, 17, 34, 17});
}

TEST_P(ConvolutionOverThreads, ManyRowsInManyTiles) {
    check({line_map(70000, 3, 4), 4, 5, 1});
    check({random_map({2, 30, 9000, 0.04}, 5), 16, 8, 1});
}

TEST_P(ConvolutionOverThreads, SubmanifoldMapsUseTheMirroredWeights) {
    check({line_map(700, 5, 6), 6, 7, 1});
    check({line_map(700, 3, 7), 8, 12, 4});
    check({line_map(300, 1, 8), 3, 4, 1});
    // Nearly mirrored: one pair is missing, one is twice.
    KernelMap map = line_map(200, 3, 9);
    auto ins = map.in_maps.as_mutable<std::int32_t>();
    ins[0] = ins[1];
    check({map, 3, 4, 1});
}

TEST_P(ConvolutionOverThreads, OneOutRowWithEveryPair) {
    check({random_map({2, 5000, 1, 0.9}, 10), 5, 6, 1});
    check({random_map({2, 1, 5000, 0.9}, 11), 5, 6, 1});
}

TEST_P(ConvolutionOverThreads, EmptyIsOrdinary) {
    for (MapSize const& size : std::vector<MapSize>{
             {3, 5, 4, 0.0}, {3, 0, 4, 1.0}, {3, 5, 0, 1.0}, {3, 0, 0, 1.0}, {0, 5, 4, 1.0}}) {
        check({random_map(size, 12), 3, 4, 1});
    }
    KernelMap const map = random_map({2, 5, 4, 0.5}, 13);
    check({map, 0, 4, 1});
    check({map, 3, 0, 1});
    check({map, 0, 0, 1});
}

TEST(Convolution, TheSameBitsOnAnyNumberOfThreads) {
    struct Results {
        Tensor out, of_input, of_weight;
    };
    for (std::int64_t channels : {16, 20, 64}) {
        for (Dtype dtype : {Dtype::Float32, Dtype::BFloat16}) {
            Case const c{line_map(60000, 3, 14), channels, channels, channels == 64 ? 2 : 1};
            auto const [features, gradient, weight] = inputs_of(c, dtype);
            std::vector<Results> all;
            for (int threads : thread_counts) {
                Threads const scope(threads);
                ConvPlan const plan(c.map);
                all.push_back({forward(plan, features, weight, c.groups),
                               input_gradient(plan, gradient, weight, c.groups),
                               weight_gradient(plan, features, gradient, c.groups)});
                EXPECT_TRUE(same_bytes(all.back().out, all[0].out));
                EXPECT_TRUE(same_bytes(all.back().of_input, all[0].of_input));
                EXPECT_TRUE(same_bytes(all.back().of_weight, all[0].of_weight));
            }
        }
    }
}

TEST(Convolution, RowsWithoutAPairDoNotTouchTheResult) {
    // Loops that multiplied absent rows by zero would make NaN of infinity.
    Case const c{random_map({2, 3, 40, 0.0}, 15), 2, 2, 1};
    Tensor features = random_tensor({3, 2}, Dtype::Float32, 1);
    for (float& x : features.as_mutable<float>()) x = std::numeric_limits<float>::infinity();
    Tensor const weight = random_tensor({2, 2, 2}, Dtype::Float32, 2);
    Tensor const out = forward(ConvPlan(c.map), features, weight);
    for (float x : out.as<float>()) EXPECT_EQ(x, 0);
}

TEST(Convolution, StridedArraysAreReadAsTheyAre) {
    Case const c{random_map({2, 6, 50, 0.2}, 16), 3, 4, 1};
    auto const [features, gradient, weight] = inputs_of(c, Dtype::Float32);
    Tensor wide = random_tensor({6, 6}, Dtype::Float32, 4);
    auto const from = features.as<float>();
    auto to = wide.as_mutable<float>();
    for (std::size_t i = 0; i < 6; ++i) {
        for (std::size_t x = 0; x < 3; ++x) to[i * 6 + 2 * x] = from[i * 3 + x];
    }
    Tensor const strided =
        Tensor::borrow_strided(wide.data(), {6, 3}, {24, 8}, Dtype::Float32, true);
    ConvPlan const plan(c.map);
    EXPECT_TRUE(same_bytes(forward(plan, strided, weight), forward(plan, features, weight)));
}

}  // namespace
}  // namespace th_test::conv
