// Shapes and strides.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensorhash/dtype.hpp"

namespace tensorhash {

/// [rows, *element]
inline Shape with_rows(std::size_t rows, Shape const& element) {
    Shape shape{static_cast<std::int64_t>(rows)};
    shape.insert(shape.end(), element.begin(), element.end());
    return shape;
}

/// Byte strides of a contiguous array.
inline Shape contiguous_strides(Shape const& shape, Dtype dtype) {
    Shape strides(shape.size());
    // Unsigned: if one dimension is 0, the others may be huge, and their product may wrap.
    std::uint64_t step = byte_size(dtype);
    for (std::size_t i = shape.size(); i-- > 0;) {
        strides[i] = static_cast<std::int64_t>(step);
        step *= static_cast<std::uint64_t>(shape[i]);
    }
    return strides;
}

}  // namespace tensorhash
