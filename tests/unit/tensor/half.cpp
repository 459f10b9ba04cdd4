// float16 and bfloat16 conversions: all 65536 patterns, and rounding against a second
// implementation.
#include "tensor/half.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "support/batches.hpp"
#include "support/reduce_oracle.hpp"

namespace th_test {
namespace {

TEST(Half, every_pattern_widens_exactly_and_comes_back) {
    for (std::uint32_t i = 0; i < 65536; ++i) {
        auto bits = static_cast<std::uint16_t>(i);
        float half = tensorhash::half_to_float(bits), brain = tensorhash::bfloat16_to_float(bits);
        if (std::isnan(from_float16(bits))) {
            EXPECT_TRUE(std::isnan(half)) << i;
            EXPECT_TRUE(std::isnan(tensorhash::half_to_float(tensorhash::float_to_half(half))))
                << i;
        } else {
            EXPECT_EQ(half, from_float16(bits)) << i;
            EXPECT_EQ(std::signbit(half), (bits & 0x8000u) != 0) << i;
            EXPECT_EQ(tensorhash::float_to_half(half), bits) << i;
        }
        if (std::isnan(from_bfloat16(bits)))
            EXPECT_TRUE(
                std::isnan(tensorhash::bfloat16_to_float(tensorhash::float_to_bfloat16(brain))))
                << i;
        else
            EXPECT_EQ(tensorhash::float_to_bfloat16(brain), bits) << i;
    }
}

TEST(Half, rounding_is_to_nearest_even) {
    Random random(1);
    auto check = [](std::uint32_t bits) {
        auto value = std::bit_cast<float>(bits);
        if (std::isnan(value)) return;
        ASSERT_EQ(tensorhash::float_to_half(value), to_float16(value)) << value;
        ASSERT_EQ(tensorhash::float_to_bfloat16(value), to_bfloat16(value)) << value;
    };
    for (int i = 0; i < 300000; ++i) check(static_cast<std::uint32_t>(random.next()));
    // Around every tie: the midpoint of two neighbours, and one step to either side.
    for (std::uint32_t i = 0; i < 0x7c00; ++i)
        for (float value :
             {(from_float16(static_cast<std::uint16_t>(i)) +
               (i + 1 < 0x7c00 ? from_float16(static_cast<std::uint16_t>(i + 1)) : 65536.0f)) /
              2})
            for (std::uint32_t step : {0xffffffffu, 0u, 1u})
                check(std::bit_cast<std::uint32_t>(value) + step);
}

}  // namespace
}  // namespace th_test
