// float16 and bfloat16 to float and back, rounded to nearest even. Portable: assumes no instruction
// set. `constexpr`, so that CUDA compilers may call them in device code.
#pragma once

#include <bit>
#include <cstdint>

namespace tensorhash {

constexpr float bfloat16_to_float(std::uint16_t bits) noexcept {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

constexpr std::uint16_t float_to_bfloat16(float value) noexcept {
    auto const bits = std::bit_cast<std::uint32_t>(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) {
        // The set bit keeps it a NaN after it loses its low bits.
        return static_cast<std::uint16_t>((bits >> 16) | 0x0040u);
    }
    return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

constexpr float half_to_float(std::uint16_t bits) noexcept {
    std::uint32_t const sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
    std::uint32_t const exponent = (bits >> 10) & 0x1fu;
    std::uint32_t const fraction = bits & 0x3ffu;
    if (exponent == 0) {
        // Subnormals are exact in float.
        float const magnitude = static_cast<float>(fraction) * 0x1p-24f;
        return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
    }
    if (exponent == 31) {
        return std::bit_cast<float>(sign | 0x7f800000u | (fraction << 13));
    }
    return std::bit_cast<float>(sign | ((exponent + 112u) << 23) | (fraction << 13));
}

constexpr std::uint16_t float_to_half(float value) noexcept {
    auto const bits = std::bit_cast<std::uint32_t>(value);
    auto const sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
    std::uint32_t const magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) {
        return static_cast<std::uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
    }
    if (magnitude >= 0x477ff000u) {  // rounds to 2^16 or more
        return static_cast<std::uint16_t>(sign | 0x7c00u);
    }
    if (magnitude < 0x38800000u) {
        // Subnormal: adding 0.5 aligns the last bit of the half with the last bit of the float, and
        // the hardware rounds.
        float const shifted = std::bit_cast<float>(magnitude) + 0.5f;
        return static_cast<std::uint16_t>(sign |
                                          (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u));
    }
    std::uint32_t const rounded = magnitude - (112u << 23) + 0xfffu + ((magnitude >> 13) & 1u);
    return static_cast<std::uint16_t>(sign | (rounded >> 13));
}

}  // namespace tensorhash
