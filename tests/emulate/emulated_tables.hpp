// The emulated back end with tables: those of src/device over a LazyQueue.
#pragma once

#include "emulate/emulated_backend.hpp"

namespace tensorhash::emulate {

/// Lives as long as the process. Without Boost.Context it has no tables.
EmulatedBackend& make_emulated_backend(LazyDevices& devices, bool has_peers);

}  // namespace tensorhash::emulate
