// Plans of convolutions: hostile maps, arguments that do not fit, and maps that change later.
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "conv_oracle.hpp"
#include "support/fixtures.hpp"
#include "tensorhash/conv.hpp"
#include "tensorhash/error.hpp"

namespace th_test::conv {
namespace {

using tensorhash::conv::ConvPlan;
using tensorhash::conv::forward;
using tensorhash::conv::input_gradient;
using tensorhash::conv::weight_gradient;

KernelMap some_map() { return random_map({3, 30, 400, 0.05}, 1); }

class PlanOverThreads : public OverThreads {};
TH_OVER_THREADS(PlanOverThreads);

TEST_P(PlanOverThreads, HostileRowNumbersAreRefused) {
    constexpr std::int32_t kLeast = std::numeric_limits<std::int32_t>::min();
    constexpr std::int32_t kMost = std::numeric_limits<std::int32_t>::max();
    for (std::int32_t bad : {-1, 30, kLeast, kMost}) {
        for (std::size_t place : {0u, 7u, 500u}) {
            KernelMap map = some_map();
            map.in_maps.as_mutable<std::int32_t>()[place] = bad;
            EXPECT_EQ(message_of<tensorhash::ValueError>([&] { ConvPlan{map}; }),
                      "in_maps: expected rows from 0 on, below 30; this map was written to after "
                      "it was made");
        }
    }
    for (std::int32_t bad : {-1, 400, kLeast, kMost}) {
        KernelMap map = some_map();
        map.out_maps.as_mutable<std::int32_t>()[0] = bad;
        EXPECT_EQ(message_of<tensorhash::ValueError>([&] { ConvPlan{map}; }),
                  "out_maps: expected rows from 0 on, below 400; this map was written to after it "
                  "was made");
    }
    KernelMap nothing_in = some_map();
    nothing_in.num_in = 0;
    EXPECT_THROW(ConvPlan{nothing_in}, tensorhash::ValueError);
}

TEST_P(PlanOverThreads, OutRowsMustAscendAlsoAcrossTheCutsOfTheCheck) {
    KernelMap const map = random_map({2, 40, 3000, 0.5}, 2);
    auto const pairs = static_cast<std::size_t>(map.out_maps.size());
    ASSERT_GT(pairs, 65536u);
    // Cuts fall on multiples of 64, and the first is at 32768 or later.
    for (std::size_t place = 32768; place < 65536; place += 64) {
        KernelMap changed = map;
        changed.out_maps = map.out_maps.clone();
        auto rows = changed.out_maps.as_mutable<std::int32_t>();
        if (rows[place - 1] == 0) continue;
        rows[place] = rows[place - 1] - 1;
        EXPECT_EQ(message_of<tensorhash::ValueError>([&] { ConvPlan{changed}; }),
                  "out_maps: expected rows that ascend within each offset; this map was written to "
                  "after it was made");
    }
}

TEST(ConvPlan, BrokenOffsetsAreRefused) {
    auto const refused = [](std::function<void(KernelMap&)> const& change) {
        KernelMap map = some_map();
        change(map);
        std::string const message = message_of<tensorhash::ValueError>([&] { ConvPlan{map}; });
        EXPECT_EQ(message.find("offsets: expected ascending numbers from 0 to"), 0u) << message;
    };
    refused([](KernelMap& map) { map.offsets.as_mutable<std::int64_t>()[0] = 1; });
    refused([](KernelMap& map) { map.offsets.as_mutable<std::int64_t>()[1] = -3; });
    refused([](KernelMap& map) { map.offsets.as_mutable<std::int64_t>()[1] = 1 << 30; });
    refused([](KernelMap& map) { map.offsets.as_mutable<std::int64_t>()[3] = 0; });
    refused([](KernelMap& map) { map.offsets = Tensor::empty({0}, Dtype::Int64); });
    refused([](KernelMap& map) { map.in_maps = Tensor::zeros({3}, Dtype::Int32); });
}

TEST(ConvPlan, WrongArraysAreRefused) {
    KernelMap map = some_map();
    map.in_maps = Tensor::zeros({map.in_maps.size()}, Dtype::Int64);
    EXPECT_EQ(message_of<tensorhash::TypeError>([&] { ConvPlan{map}; }),
              "in_maps: expected int32, got int64");
    map = some_map();
    map.out_maps = map.out_maps.reshape({1, map.out_maps.size()});
    EXPECT_THROW(ConvPlan{map}, tensorhash::ValueError);
    map = some_map();
    map.num_out = -1;
    EXPECT_THROW(ConvPlan{map}, tensorhash::ValueError);
}

TEST(ConvPlan, LaterWritesToTheMapDoNotCount) {
    KernelMap map = some_map();
    Tensor const features = random_tensor({30, 4}, Dtype::Float32, 1);
    Tensor const gradient = random_tensor({400, 5}, Dtype::Float32, 2);
    Tensor const weight = random_tensor({3, 4, 5}, Dtype::Float32, 3);
    ConvPlan const plan(map);
    Tensor const before = forward(plan, features, weight);
    for (Tensor* rows : {&map.in_maps, &map.out_maps}) {
        for (std::int32_t& row : rows->as_mutable<std::int32_t>()) row = 1 << 30;
    }
    EXPECT_TRUE(same_bytes(forward(plan, features, weight), before));
    EXPECT_EQ(input_gradient(plan, gradient, weight).shape(), features.shape());
}

TEST(ConvPlan, SizesOfThePlan) {
    ConvPlan const plan(some_map());
    EXPECT_EQ(plan.offsets(), 3);
    EXPECT_EQ(plan.num_in(), 30);
    EXPECT_EQ(plan.num_out(), 400);
    EXPECT_EQ(plan.pairs(), some_map().in_maps.size());
}

class ConvArguments : public ::testing::Test {
protected:
    template <class Error, class Call>
    static void refuses(std::string const& message, Call call) {
        EXPECT_EQ(message_of<Error>(call), message);
    }
    ConvPlan plan{some_map()};
    Tensor features = random_tensor({30, 4}, Dtype::Float32, 1);
    Tensor gradient = random_tensor({400, 6}, Dtype::Float32, 2);
    Tensor weight = random_tensor({3, 4, 6}, Dtype::Float32, 3);
};

TEST_F(ConvArguments, ShapesThatDoNotFitAreRefused) {
    using tensorhash::ValueError;
    refuses<ValueError>(
        "features: expected shape (30, channels), one row per in row of the kernel map, got "
        "(29, 4)",
        [&] { forward(plan, Tensor::zeros({29, 4}, Dtype::Float32), weight); });
    refuses<ValueError>(
        "weight: expected shape (3, in channels of a group, out channels): one matrix per offset "
        "of the kernel map, got (2, 4, 6)",
        [&] { forward(plan, features, Tensor::zeros({2, 4, 6}, Dtype::Float32)); });
    refuses<ValueError>(
        "weight: expected shape (3, 4, out channels): offsets of the kernel map, channels of "
        "features by group, got (3, 5, 6)",
        [&] { forward(plan, features, Tensor::zeros({3, 5, 6}, Dtype::Float32)); });
    refuses<ValueError>(
        "weight: expected 6 out channels as the gradient has, got shape (3, 4, 7)",
        [&] { input_gradient(plan, gradient, Tensor::zeros({3, 4, 7}, Dtype::Float32)); });
    refuses<ValueError>(
        "gradient: expected shape (400, channels), one row per out row of the kernel map, got "
        "(30, 4)",
        [&] { weight_gradient(plan, features, features); });
}

TEST_F(ConvArguments, GroupsMustDivideTheChannels) {
    using tensorhash::ValueError;
    for (std::int64_t groups : {0, -2, 4}) {
        refuses<ValueError>(
            "groups: expected a positive divisor of the 6 channels of weight, got " +
                std::to_string(groups),
            [&] { forward(plan, features, weight, groups); });
    }
    refuses<ValueError>("groups: expected a positive divisor of the 4 channels of features, got 3",
                        [&] { weight_gradient(plan, features, gradient, 3); });
}

TEST_F(ConvArguments, DtypesMustBeTheSameFloat) {
    using tensorhash::TypeError;
    refuses<TypeError>("features: expected float32, float64, float16 or bfloat16, got int32",
                       [&] { forward(plan, Tensor::zeros({30, 4}, Dtype::Int32), weight); });
    refuses<TypeError>("weight: expected float64 as features, got float32",
                       [&] { forward(plan, Tensor::zeros({30, 4}, Dtype::Float64), weight); });
}

}  // namespace
}  // namespace th_test::conv
