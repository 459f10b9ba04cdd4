// The table of allocators.
#include "tensor/allocators.hpp"

namespace tensorhash {

// Constant-initialised, so that a back end can register before any constructor has run.
constinit AllocatorTable allocators{};

}  // namespace tensorhash
