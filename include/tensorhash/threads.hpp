// How many threads the library uses. Results never depend on it.
#pragma once

#include "tensorhash/export.hpp"

namespace tensorhash {

/// Threads a call may use, the caller's own among them. At first TENSORHASH_NUM_THREADS, or what affinity and cgroup allow.
TH_API int num_threads() noexcept;

/// Throws ValueError unless 1 <= n <= 1024. Calls under way finish with the threads they have.
TH_API void set_num_threads(int n);

}  // namespace tensorhash
