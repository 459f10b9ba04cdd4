// Memory cache: the library keeps freed blocks of 256 KiB and more for reuse. The limit is 1 GiB,
// or 1/16 of the machine's memory or cgroup limit if that is less. One block may take half of it.
#pragma once

#include <cstddef>

#include "tensorhash/export.hpp"

namespace tensorhash {

/// Returns the kept blocks to the system and reports their size in bytes. Tables and results stay
/// as they are.
TH_API std::size_t release_memory() noexcept;

}  // namespace tensorhash
