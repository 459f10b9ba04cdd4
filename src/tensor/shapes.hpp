// Shapes of batches.
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

}  // namespace tensorhash
