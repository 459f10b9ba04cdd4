#include "support/reduce_oracle.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

namespace th_test {

float from_bfloat16(std::uint16_t bits) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

std::uint16_t to_bfloat16(float x) {
    if (std::isnan(x)) return 0x7fc0;
    auto bits = std::bit_cast<std::uint32_t>(x);
    std::uint32_t low = bits & 0xffffu;
    std::uint32_t high = bits >> 16;
    if (low > 0x8000u || (low == 0x8000u && (high & 1u))) ++high;
    return static_cast<std::uint16_t>(high);
}

float from_float16(std::uint16_t bits) {
    int exponent = (bits >> 10) & 31;
    int fraction = bits & 1023;
    float sign = (bits & 0x8000u) ? -1.0f : 1.0f;
    if (exponent == 31)
        return fraction ? std::copysign(std::numeric_limits<float>::quiet_NaN(), sign)
                        : sign * std::numeric_limits<float>::infinity();
    if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), -24);
    return sign * std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
}

std::uint16_t to_float16(float x) {
    std::uint16_t sign = std::signbit(x) ? 0x8000u : 0u;
    if (std::isnan(x)) return static_cast<std::uint16_t>(sign | 0x7e00u);
    if (std::isinf(x)) return static_cast<std::uint16_t>(sign | 0x7c00u);
    double size = std::fabs(static_cast<double>(x));
    int exponent = size == 0 ? -14 : std::max(-14, std::ilogb(size));
    double steps = std::nearbyint(std::ldexp(size, 10 - exponent));
    if (steps >= 2048) {
        ++exponent;
        steps = 1024;
    }
    if (exponent > 15) return static_cast<std::uint16_t>(sign | 0x7c00u);
    auto fraction = static_cast<std::uint16_t>(steps);
    if (fraction < 1024) return static_cast<std::uint16_t>(sign | fraction);
    return static_cast<std::uint16_t>(sign | ((exponent + 15) << 10) | (fraction - 1024));
}

namespace {

template <class T>
T reduce_element(tensorhash::Reduce how, T stored, T given) {
    using tensorhash::Reduce;
    if (how == Reduce::First) return stored;
    if (how == Reduce::Last) return given;
    if constexpr (std::is_floating_point_v<T>) {
        if (how == Reduce::Sum) return stored + given;
        if (how == Reduce::Prod) return stored * given;
        if (std::isnan(stored)) return stored;
        if (std::isnan(given)) return given;
    } else if (how == Reduce::Sum) {
        using U = std::make_unsigned_t<T>;
        return static_cast<T>(static_cast<U>(static_cast<U>(stored) + static_cast<U>(given)));
    } else if (how == Reduce::Prod) {
        __extension__ using Wide = unsigned __int128;
        return static_cast<T>(static_cast<Wide>(stored) * static_cast<Wide>(given));
    }
    if (how == Reduce::Min) return given < stored ? given : stored;
    return stored < given ? given : stored;
}

/// Bool as a logic value: sum and max are or, min and prod are and.
std::uint8_t reduce_bool(tensorhash::Reduce how, std::uint8_t stored, std::uint8_t given) {
    using tensorhash::Reduce;
    if (how == Reduce::First) return stored;
    if (how == Reduce::Last) return given;
    bool const is_and = how == Reduce::Min || how == Reduce::Prod;
    return is_and ? (stored & given) : (stored | given);
}

template <class T, class Step>
void reduce_each(char* stored, char const* given, std::size_t bytes, Step step) {
    for (std::size_t at = 0; at < bytes; at += sizeof(T)) {
        T a, b;
        std::memcpy(&a, stored + at, sizeof(T));
        std::memcpy(&b, given + at, sizeof(T));
        a = step(a, b);
        std::memcpy(stored + at, &a, sizeof(T));
    }
}

}  // namespace

void reduce_row(tensorhash::Dtype dtype, tensorhash::Reduce how, char* stored, char const* given,
                std::size_t bytes) {
    using tensorhash::Dtype;
    using tensorhash::Reduce;
    auto plain = [&]<class T>(T) {
        reduce_each<T>(stored, given, bytes,
                       [how](T a, T b) { return reduce_element<T>(how, a, b); });
    };
    auto half = [&](auto widen, auto narrow) {
        reduce_each<std::uint16_t>(stored, given, bytes, [&](std::uint16_t a, std::uint16_t b) {
            if (how == Reduce::First) return a;
            if (how == Reduce::Last) return b;
            return narrow(reduce_element<float>(how, widen(a), widen(b)));
        });
    };
    switch (dtype) {
        case Dtype::Bool:
            return reduce_each<std::uint8_t>(
                stored, given, bytes,
                [how](std::uint8_t a, std::uint8_t b) { return reduce_bool(how, a, b); });
        case Dtype::Int8:
            return plain(std::int8_t{});
        case Dtype::Int16:
            return plain(std::int16_t{});
        case Dtype::Int32:
            return plain(std::int32_t{});
        case Dtype::Int64:
            return plain(std::int64_t{});
        case Dtype::UInt8:
            return plain(std::uint8_t{});
        case Dtype::UInt16:
            return plain(std::uint16_t{});
        case Dtype::UInt32:
            return plain(std::uint32_t{});
        case Dtype::UInt64:
            return plain(std::uint64_t{});
        case Dtype::Float32:
            return plain(float{});
        case Dtype::Float64:
            return plain(double{});
        case Dtype::Float16:
            return half(from_float16, to_float16);
        case Dtype::BFloat16:
            return half(from_bfloat16, to_bfloat16);
        case Dtype::Undefined:
            return;
    }
}

}  // namespace th_test
