// Memory that the library keeps for later. Freed blocks of 256 KiB and more stay warm for the next
// table, result or scratch. Each process keeps at most 1 GiB, and at most a sixteenth of the
// machine's memory or of the limit of the control group (cgroup) that it is in, whichever is less.
#pragma once

#include <cstddef>

#include "tensorhash/export.hpp"

namespace tensorhash {

/// Gives what is kept back to the system and returns how many bytes that were. Tables and results are not touched.
TH_API std::size_t release_memory() noexcept;

}  // namespace tensorhash
