// Element types and shapes of keys and values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tensorhash/export.hpp"

namespace tensorhash {

/// The values are part of the file format and of the C interface: never renumber.
enum class Dtype : std::uint8_t {
    Undefined = 0,
    Bool = 1,
    Int8 = 2,
    Int16 = 3,
    Int32 = 4,
    Int64 = 5,
    UInt8 = 6,
    UInt16 = 7,
    UInt32 = 8,
    UInt64 = 9,
    Float16 = 10,
    BFloat16 = 11,
    Float32 = 12,
    Float64 = 13,
};

using Shape = std::vector<std::int64_t>;

/// Bytes of one element, 0 for Undefined.
TH_API std::size_t byte_size(Dtype dtype) noexcept;
/// "int64", "bfloat16", ...
TH_API std::string_view name(Dtype dtype) noexcept;
/// The inverse of `name`. Throws a TypeError that lists the valid names.
TH_API Dtype dtype_from_name(std::string_view name);
/// True for bool, integers, float32 and float64, the dtypes that keys may have.
TH_API bool is_key_dtype(Dtype dtype) noexcept;

/// The product of the dimensions. Throws ValueError if one is negative or the product overflows.
TH_API std::int64_t num_elements(Shape const& shape);
/// As Python prints it: "(3,)".
TH_API std::string to_string(Shape const& shape);

/// The type of one key or one value: a dtype and an element shape.
struct Element {
    Dtype dtype = Dtype::Undefined;
    Shape shape;

    std::size_t bytes() const {
        return byte_size(dtype) * static_cast<std::size_t>(num_elements(shape));
    }
    friend bool operator==(Element const&, Element const&) = default;
};

template <class T> inline constexpr Dtype dtype_of = Dtype::Undefined;
template <> inline constexpr Dtype dtype_of<bool> = Dtype::Bool;
template <> inline constexpr Dtype dtype_of<std::int8_t> = Dtype::Int8;
template <> inline constexpr Dtype dtype_of<std::int16_t> = Dtype::Int16;
template <> inline constexpr Dtype dtype_of<std::int32_t> = Dtype::Int32;
template <> inline constexpr Dtype dtype_of<std::int64_t> = Dtype::Int64;
template <> inline constexpr Dtype dtype_of<std::uint8_t> = Dtype::UInt8;
template <> inline constexpr Dtype dtype_of<std::uint16_t> = Dtype::UInt16;
template <> inline constexpr Dtype dtype_of<std::uint32_t> = Dtype::UInt32;
template <> inline constexpr Dtype dtype_of<std::uint64_t> = Dtype::UInt64;
template <> inline constexpr Dtype dtype_of<float> = Dtype::Float32;
template <> inline constexpr Dtype dtype_of<double> = Dtype::Float64;

/// A C++ type that has a dtype. float16 and bfloat16 have no C++ type: pass their bits to
/// `Tensor::borrow`.
template <class T>
concept HasDtype = dtype_of<T> != Dtype::Undefined;

}  // namespace tensorhash
