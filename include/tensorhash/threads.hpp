// How many threads the library uses. Results never depend on it.
#pragma once

#include "tensorhash/export.hpp"

namespace tensorhash {

/// The threads that a call may use, including the calling thread. The default is
/// TENSORHASH_NUM_THREADS, or what CPU affinity and cgroup allow.
TH_API int num_threads() noexcept;

/// Throws ValueError unless 1 <= n <= 1024. Running calls keep their threads.
TH_API void set_num_threads(int n);

}  // namespace tensorhash
