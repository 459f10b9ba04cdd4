// The loops at every instruction-set level: those with FMA give the same bits, and the baseline
// is as near to the exact sums as they are.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "conv/loops.hpp"
#include "conv_oracle.hpp"
#include "cpu/engine.hpp"
#include "support/fixtures.hpp"
#include "tensorhash/conv.hpp"

namespace th_test::conv {
namespace {

namespace core = tensorhash::conv;

struct NamedLevel {
    core::Level const* level;
    bool fused;
};

std::vector<NamedLevel> levels() {
    std::vector<NamedLevel> out;
#if defined(TH_HAS_CONV_LEVEL_v2)
    out.push_back({&core::level_v2(), false});
#endif
#if defined(TH_HAS_CONV_LEVEL_v3)
    if (tensorhash::cpu::has_v3()) out.push_back({&core::level_v3(), true});
#endif
#if defined(TH_HAS_CONV_LEVEL_v4)
    if (tensorhash::cpu::has_v4()) out.push_back({&core::level_v4(), true});
#endif
#if defined(TH_HAS_CONV_LEVEL_generic)
    out.push_back({&core::level_generic(), false});
#endif
    return out;
}

struct OnLevel {
    explicit OnLevel(core::Level const& level) { core::force_level(&level); }
    ~OnLevel() { core::force_level(nullptr); }
};

void compare_levels(Case const& c, Dtype dtype) {
    SCOPED_TRACE(std::to_string(c.in) + " to " + std::to_string(c.out) + " channels, " +
                 std::string(name(dtype)));
    Tensor const features = random_tensor({c.map.num_in, c.in}, dtype, 1);
    Tensor const gradient = random_tensor({c.map.num_out, c.out}, dtype, 2);
    Tensor const weight =
        random_tensor({c.map.offsets.size() - 1, c.in / c.groups, c.out}, dtype, 3);
    Sums const sums[] = {forward_oracle(c, features, weight), input_oracle(c, gradient, weight),
                         weight_oracle(c, features, gradient)};
    core::ConvPlan const plan(c.map);
    std::vector<Tensor> fused;
    for (auto const& [level, has_fma] : levels()) {
        SCOPED_TRACE(level->name);
        OnLevel const scope(*level);
        std::vector<Tensor> got{core::forward(plan, features, weight, c.groups),
                                core::input_gradient(plan, gradient, weight, c.groups),
                                core::weight_gradient(plan, features, gradient, c.groups)};
        for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(is_near(got[i], sums[i]));
        if (!has_fma) continue;
        if (fused.empty()) fused = std::move(got);
        for (std::size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(same_bytes(got[i], fused[i]));
    }
}

TEST(ConvLevels, LevelsWithFmaGiveTheSameBitsAndAllAreNear) {
    KernelMap const map = random_map({3, 60, 300, 0.04}, 1);
    for (Dtype dtype : {Dtype::Float32, Dtype::Float64, Dtype::Float16, Dtype::BFloat16}) {
        for (std::int64_t in : {1, 3, 16, 33}) {
            for (std::int64_t out : {1, 8, 16, 17, 32, 48, 65}) {
                compare_levels({map, in, out, 1}, dtype);
            }
        }
        compare_levels({map, 24, 36, 4}, dtype);
    }
    // More channels than one chain has, and more pairs than one part of the weights' gradient.
    compare_levels({random_map({1, 12, 20, 0.3}, 2), 1040, 16, 1}, Dtype::Float32);
    compare_levels({random_map({2, 40, 900, 0.5}, 3), 16, 16, 1}, Dtype::Float32);
}

}  // namespace
}  // namespace th_test::conv
