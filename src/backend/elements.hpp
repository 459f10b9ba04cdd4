// Elements of arrays as a back end sees them: checked and, unless said otherwise, contiguous.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/batch.hpp"
#include "tensorhash/dtype.hpp"
#include "tensorhash/export.hpp"

namespace tensorhash::backend {

/// Converts `count` elements.
struct Cast {
    Bytes from;
    Dtype from_dtype;
    unsigned char* to;
    Dtype to_dtype;
    std::uint64_t count;
};

/// Some rows of an array, by number. Negative numbers count from the end.
struct PickedRows {
    std::uint64_t rows;  // of the array, fewer than 2^32
    std::uint64_t row_bytes;
    std::int64_t const* indices;
    std::uint64_t count;  // fewer than 2^32
};

/// Copies contiguous elements to a strided array that they do not overlap.
struct Paste {
    Bytes from;
    unsigned char* to;
    Shape const& shape;
    Shape const& byte_strides;
    std::size_t element_bytes;
};

/// Throws an IndexError for element `at` of `indices`.
[[noreturn]] TH_API void fail_row_number(std::uint64_t at, std::int64_t number, std::uint64_t rows);

}  // namespace tensorhash::backend
