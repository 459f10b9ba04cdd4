// Copies between strided and contiguous memory.
#pragma once

#include <cstddef>

#include "tensorhash/dtype.hpp"

namespace tensorhash {

/// Fills contiguous `to` with the elements at `from`, strides in bytes (zero and negative ones too), in C order.
void gather_strided(void* to, void const* from, Shape const& shape, Shape const& byte_strides,
                    std::size_t element_bytes);

}  // namespace tensorhash
