// Memory cache: freed blocks of 256 KiB and more are kept for the next table, result or scratch. A
// process keeps at most 1 GiB, and at most 1/16 of the machine's memory or of its cgroup limit.
#pragma once

#include <cstddef>

#include "tensorhash/export.hpp"

namespace tensorhash {

/// Returns the kept blocks to the system. The result is their size in bytes. Tables and results
/// stay as they are.
TH_API std::size_t release_memory() noexcept;

}  // namespace tensorhash
