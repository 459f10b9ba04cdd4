// Integer powers and means of squares with the same bits on every machine, library and device.
// `constexpr`, so that CUDA compilers may call them in device code.
#pragma once

#include <cstdint>

namespace tensorhash {

/// base to the power of `exponent` >= 0, by squaring. std::pow may differ in the last bit between
/// libraries.
constexpr double integer_power(double base, std::int64_t exponent) {
    double power = 1;
    for (auto left = static_cast<std::uint64_t>(exponent); left > 0; left >>= 1) {
        if ((left & 1u) != 0) {
            power *= base;
        }
        base *= base;
    }
    return power;
}

/// The mean of the squares of number(0) to number(count - 1); 0 if there are none. Four sums side
/// by side: one sum alone would wait for each addition. Inlined, because kernel bodies call no
/// functions.
template <class T, class Number>
__attribute__((always_inline)) constexpr T mean_square(std::uint64_t count, Number const& number) {
    if (count == 0) {
        return T(0);
    }
    auto const square = [&](std::uint64_t i) __attribute__((always_inline)) {
        T const x = number(i);
        return x * x;
    };
    T a = 0, b = 0, c = 0, d = 0;
    std::uint64_t i = 0;
    for (; i + 4 <= count; i += 4) {
        a += square(i);
        b += square(i + 1);
        c += square(i + 2);
        d += square(i + 3);
    }
    for (; i < count; ++i) {
        a += square(i);
    }
    return ((a + b) + (c + d)) / static_cast<T>(count);
}

}  // namespace tensorhash
