// Tables on emulated devices: those of src/device over a LazyQueue.
#pragma once

#include "emulate/emulated_backend.hpp"

namespace tensorhash::emulate {

/// The factory for an EmulatedBackend over these devices.
MakeTable table_factory(LazyDevices& devices);

}  // namespace tensorhash::emulate
