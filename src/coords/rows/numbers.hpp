// Every dtype that is a number: how it is stored and in what it is computed.
#pragma once

#include <cstdint>
#include <string>

#include "tensor/half.hpp"
#include "tensorhash/dtype.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::coords {

template <class T>
struct Plain {
    using Stored = T;
    using Value = T;
    static T load(T stored) noexcept { return stored; }
    static T store(T value) noexcept { return value; }
};
/// Every byte but 0 is true.
struct Truth {
    using Stored = unsigned char;
    using Value = std::uint8_t;
    static Value load(Stored stored) noexcept { return stored != 0; }
    static Stored store(Value value) noexcept { return value; }
};
struct Half {
    using Stored = std::uint16_t;
    using Value = float;
    static Value load(Stored stored) noexcept { return half_to_float(stored); }
    static Stored store(Value value) noexcept { return float_to_half(value); }
};
struct BrainHalf {
    using Stored = std::uint16_t;
    using Value = float;
    static Value load(Stored stored) noexcept { return bfloat16_to_float(stored); }
    static Stored store(Value value) noexcept { return float_to_bfloat16(value); }
};

/// Calls body(Plain<float>{}) or its like, whichever the dtype is.
template <class Body>
void visit_number(Dtype dtype, std::string const& argument, Body&& body) {
    switch (dtype) {
        case Dtype::Bool:
            return body(Truth{});
        case Dtype::Int8:
            return body(Plain<std::int8_t>{});
        case Dtype::Int16:
            return body(Plain<std::int16_t>{});
        case Dtype::Int32:
            return body(Plain<std::int32_t>{});
        case Dtype::Int64:
            return body(Plain<std::int64_t>{});
        case Dtype::UInt8:
            return body(Plain<std::uint8_t>{});
        case Dtype::UInt16:
            return body(Plain<std::uint16_t>{});
        case Dtype::UInt32:
            return body(Plain<std::uint32_t>{});
        case Dtype::UInt64:
            return body(Plain<std::uint64_t>{});
        case Dtype::Float16:
            return body(Half{});
        case Dtype::BFloat16:
            return body(BrainHalf{});
        case Dtype::Float32:
            return body(Plain<float>{});
        case Dtype::Float64:
            return body(Plain<double>{});
        case Dtype::Undefined:
            break;
    }
    throw TypeError(argument + ": expected an array of numbers, got one without a dtype");
}

}  // namespace tensorhash::coords
