// The memory that a device keeps for reuse.
#pragma once

#include "tensorhash/device.hpp"
#include "tensorhash/export.hpp"

namespace tensorhash {

/// Gives the freed memory that `device` keeps for later allocations back to its driver. On the CPU
/// that is release_memory(), and this does nothing.
TH_API void release_cache(Device device);

}  // namespace tensorhash
