// Calls code with the stored form of a dtype that is only known at run time.
#pragma once

#include <cstdint>
#include <string>

#include "tensor/stored.hpp"
#include "tensorhash/dtype.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash {

/// Calls body(Plain<float>{}), or the same with the form of another dtype.
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

}  // namespace tensorhash
