// Conversions between dtypes against the definition of rounding, and what is said about rows.
#include "tensor/casts.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

namespace th_test {
namespace {

using tensorhash::AnyNumber;
using tensorhash::converted;
using tensorhash::half_to_float;

std::uint16_t to_half(double value) { return converted<tensorhash::Half>(AnyNumber::of(value)); }

TEST(Casts, a_double_becomes_the_nearest_half) {
    for (std::uint16_t bits = 0; bits < 0x7bff; ++bits) {
        double const low = half_to_float(bits);
        double const high = half_to_float(static_cast<std::uint16_t>(bits + 1));
        double const middle = (low + high) / 2;
        auto const even = static_cast<std::uint16_t>(bits + (bits & 1));
        ASSERT_EQ(to_half(middle), even) << middle;
        ASSERT_EQ(to_half(-middle), even | 0x8000) << middle;
        ASSERT_EQ(to_half(std::nextafter(middle, 0)), bits) << middle;
        ASSERT_EQ(to_half(std::nextafter(middle, 1e9)), bits + 1) << middle;
    }
    EXPECT_EQ(to_half(65519.99999), 0x7bff);
    EXPECT_EQ(to_half(65520), 0x7c00);
    EXPECT_EQ(to_half(1e300), 0x7c00);
}

template <class T>
T to(double value) {
    return converted<tensorhash::Plain<T>>(AnyNumber::of(value));
}

TEST(Casts, floats_lose_their_fraction) {
    EXPECT_EQ(to<std::int8_t>(-7.9), -7);
    EXPECT_EQ(to<std::uint8_t>(255.9), 255);
    EXPECT_EQ(to<std::int32_t>(-0x1p31), std::numeric_limits<std::int32_t>::min());
    EXPECT_EQ(to<std::uint32_t>(4294967295.5), 4294967295u);
    EXPECT_EQ(to<std::int64_t>(-0x1p63), std::numeric_limits<std::int64_t>::min());
    EXPECT_EQ(to<std::uint64_t>(0x1p63 + 2048), (std::uint64_t{1} << 63) + 2048);
    EXPECT_EQ(converted<tensorhash::Truth>(AnyNumber::of(0.4)), 1);
    EXPECT_EQ(converted<tensorhash::Truth>(AnyNumber::of(-0.0)), 0);
}

TEST(Casts, integers_keep_their_low_bits_and_round_once) {
    EXPECT_EQ(converted<tensorhash::Plain<std::int8_t>>(AnyNumber::of(std::int64_t{-129})), 127);
    std::uint64_t const most = std::numeric_limits<std::uint64_t>::max();
    EXPECT_EQ(converted<tensorhash::Plain<float>>(AnyNumber::of(most)), 0x1p64f);
    EXPECT_EQ(converted<tensorhash::Plain<std::int64_t>>(AnyNumber::of(most)), -1);
    // By way of a double this would be a tie, and round down.
    std::int64_t const above_a_tie = (std::int64_t{1} << 60) + (std::int64_t{1} << 36) + 1;
    EXPECT_EQ(converted<tensorhash::Plain<float>>(AnyNumber::of(above_a_tie)), 0x1p60f + 0x1p37f);
}

}  // namespace
}  // namespace th_test
