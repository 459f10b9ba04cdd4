// How a dtype is stored and in which type it is computed: in itself, or in float for half types.
#pragma once

#include <cstdint>

#include "tensor/half.hpp"

namespace tensorhash {

template <class T>
struct Plain {
    using Stored = T;
    using Computed = T;
    static constexpr T load(T stored) { return stored; }
    static constexpr T store(T value) { return value; }
};

struct Half {
    using Stored = std::uint16_t;
    using Computed = float;
    static constexpr float load(std::uint16_t bits) { return half_to_float(bits); }
    static constexpr std::uint16_t store(float value) { return float_to_half(value); }
};

struct BrainHalf {
    using Stored = std::uint16_t;
    using Computed = float;
    static constexpr float load(std::uint16_t bits) { return bfloat16_to_float(bits); }
    static constexpr std::uint16_t store(float value) { return float_to_bfloat16(value); }
};

/// A bool as stored: every byte but 0 is true.
struct Truth {
    using Stored = unsigned char;
    using Computed = std::uint8_t;
    static constexpr Computed load(Stored stored) { return stored != 0; }
    static constexpr Stored store(Computed value) { return value; }
};

}  // namespace tensorhash
