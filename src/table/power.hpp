// Integer powers by multiplication only, so that every machine and library gives the same bits.
#pragma once

#include <cstdint>

namespace tensorhash::table {

/// base to the power of `exponent` >= 0, by squaring. std::pow may differ in the last bit between
/// libraries.
inline double integer_power(double base, std::int64_t exponent) noexcept {
    double power = 1;
    for (auto left = static_cast<std::uint64_t>(exponent); left > 0; left >>= 1) {
        if ((left & 1u) != 0) {
            power *= base;
        }
        base *= base;
    }
    return power;
}

}  // namespace tensorhash::table
