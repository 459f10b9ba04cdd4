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

/// Where elements lie, in bytes from the first one: the lowest one, and the end of the highest one.
struct Extent {
    std::int64_t low = 0;
    std::int64_t high = 0;
};

/// Both numbers are 0 if there are no elements.
inline Extent extent_of(Shape const& shape, Shape const& byte_strides, std::size_t element_bytes) {
    Extent extent{0, static_cast<std::int64_t>(element_bytes)};
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
        if (shape[axis] == 0) {
            return {};
        }
        std::int64_t const last = (shape[axis] - 1) * byte_strides[axis];
        (last < 0 ? extent.low : extent.high) += last;
    }
    return extent;
}

}  // namespace tensorhash
