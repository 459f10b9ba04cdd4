// Copies strided to contiguous memory.
#pragma once

#include <cstddef>

#include "tensorhash/dtype.hpp"

namespace tensorhash {

/// Fills contiguous `to` with the elements at `from`, in C order. Strides are in bytes and may be
/// zero or negative.
void gather_strided(void* to, void const* from, Shape const& shape, Shape const& byte_strides,
                    std::size_t element_bytes);

}  // namespace tensorhash
