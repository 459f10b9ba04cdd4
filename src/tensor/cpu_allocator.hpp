// The CPU's memory. The CPU's back end puts it into the table of allocators.
#pragma once

#include "tensor/allocators.hpp"

namespace tensorhash {

Allocator& cpu_allocator() noexcept;

}  // namespace tensorhash
