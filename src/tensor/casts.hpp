// Converts one number to a dtype. CPU and devices share it, so both give the same bits.
// `constexpr`, so that CUDA compilers may call it in device code.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "tensor/stored.hpp"

namespace tensorhash {

/// A number of any dtype, without loss.
struct AnyNumber {
    enum class Kind : unsigned char { Signed, Unsigned, Real };

    double real = 0;
    std::uint64_t bits = 0;  // of an integer, in two's complement
    Kind kind = Kind::Signed;

    template <class Number>
    static constexpr AnyNumber of(Number number) {
        if constexpr (std::is_floating_point_v<Number>) {
            return {static_cast<double>(number), 0, Kind::Real};
        } else {
            Kind const kind = std::is_signed_v<Number> ? Kind::Signed : Kind::Unsigned;
            return {0, static_cast<std::uint64_t>(number), kind};
        }
    }
};

namespace casts {

/// Rounds to the odd one of the two floats around `value`, so that a second rounding to a shorter
/// type gives what one rounding of `value` gives.
constexpr float to_odd_float(double value) {
    auto const nearest = static_cast<float>(value);
    auto const back = static_cast<double>(nearest);
    auto const bits = std::bit_cast<std::uint32_t>(nearest);
    if (back == value || value != value || (bits & 1) != 0) {
        return nearest;
    }
    bool const is_larger = (back < 0 ? -back : back) > (value < 0 ? -value : value);
    return std::bit_cast<float>(is_larger ? bits - 1 : bits + 1);
}

/// Drops the fraction. Numbers out of range become the least one of a register, as on x86.
template <class Integer>
constexpr Integer to_integer(double value) {
    // Integers of less than 32 bits are the low bits of an int32.
    constexpr bool kIsShort = sizeof(Integer) < 4 || std::is_same_v<Integer, std::int32_t>;
    constexpr double kLimit = kIsShort ? 0x1p31 : 0x1p63;
    if (std::is_same_v<Integer, std::uint64_t> && value >= 0x1p63 && value < 0x1p64) {
        return static_cast<Integer>(static_cast<std::uint64_t>(value));
    }
    if (value > -kLimit - 1 && value < kLimit) {
        return static_cast<Integer>(static_cast<std::int64_t>(value));
    }
    constexpr std::uint64_t kLeast = std::uint64_t{1} << (kIsShort ? 31 : 63);
    return static_cast<Integer>(kLeast);
}

/// `number` as float or double.
template <class Real>
constexpr Real to_real(AnyNumber number) {
    switch (number.kind) {
        case AnyNumber::Kind::Signed:
            return static_cast<Real>(static_cast<std::int64_t>(number.bits));
        case AnyNumber::Kind::Unsigned:
            return static_cast<Real>(number.bits);
        case AnyNumber::Kind::Real:
            break;
    }
    return static_cast<Real>(number.real);
}

}  // namespace casts

/// The number in the stored form `Type`, as in Plain<float>.
template <class Type>
constexpr typename Type::Stored converted(AnyNumber number) {
    bool const is_real = number.kind == AnyNumber::Kind::Real;
    if constexpr (std::is_same_v<Type, Truth>) {
        return is_real ? number.real != 0 : number.bits != 0;
    } else if constexpr (std::is_same_v<Type, Half>) {
        return Half::store(is_real ? casts::to_odd_float(number.real)
                                   : casts::to_real<float>(number));
    } else if constexpr (std::is_floating_point_v<typename Type::Computed>) {
        return Type::store(casts::to_real<typename Type::Computed>(number));
    } else {
        using Integer = typename Type::Stored;
        return is_real ? casts::to_integer<Integer>(number.real)
                       : static_cast<Integer>(number.bits);
    }
}

}  // namespace tensorhash
