// Plugins: libraries with the back end of a device besides the CPU.
#pragma once

#include "backend/device_backend.hpp"

namespace tensorhash::backend {

/// The type of a plugin's only symbol, which is called before anything else. It gets the version of
/// the library, and returns null if the plugin was built for another one: interfaces differ between
/// versions. A plugin links the library, so that its exceptions and tensors are the same.
using PluginEntry = DeviceBackend* (*)(char const* version);
inline constexpr char const* kPluginEntry = "tensorhash_backend";

}  // namespace tensorhash::backend
