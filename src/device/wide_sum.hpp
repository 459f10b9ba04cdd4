// WideSum: the exact sum of up to 2^32 integers of any dtype, and its mean.
#pragma once

#include <cstdint>
#include <type_traits>

#include "device/grid.hpp"

namespace tensorhash::device {

/// 128 bits, two's complement. Device compilers have no division of such numbers.
struct WideSum {
    std::uint64_t low = 0;
    std::int64_t high = 0;

    template <class Int>
    TH_STEP void add(Int value) {
        auto const bits = static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
        std::int64_t const sign = std::is_signed_v<Int> && value < 0 ? -1 : 0;
        low += bits;
        high += sign + (low < bits ? 1 : 0);
    }
    TH_STEP bool fits_int64() const { return high == static_cast<std::int64_t>(low) >> 63; }
    TH_STEP bool fits_uint64() const { return high == 0; }

    /// The whole part and the rest are converted on their own, as the CPU does. `count` numbers
    /// were added, so the whole part has at most 64 bits.
    TH_STEP double mean(std::uint32_t count) const {
        bool const negative = high < 0;
        std::uint64_t const bits = negative ? 0 - low : low;
        auto top = static_cast<std::uint64_t>(high);
        top = negative ? ~top + (low == 0 ? 1 : 0) : top;
        std::uint64_t const upper = top << 32 | bits >> 32;  // top < count
        std::uint64_t const lower = upper % count << 32 | (bits & 0xffffffffu);
        std::uint64_t const whole = upper / count << 32 | lower / count;
        double const mean = static_cast<double>(whole) +
                            static_cast<double>(lower % count) / static_cast<double>(count);
        return negative ? -mean : mean;
    }
};

}  // namespace tensorhash::device
