// The loader: picks the back end of a device.
#pragma once

#include <string_view>

#include "backend/device_backend.hpp"

namespace tensorhash::backend {

/// The back end for devices of this type. Throws DeviceError, naming `argument`, if there is none.
DeviceBackend& backend_for(Device device, std::string_view argument);

/// The CPU's, which is always there. src/table/ defines it.
DeviceBackend& cpu_backend() noexcept;
/// The coordinates of the CPU. src/coords/ defines it.
CoordsBackend const& cpu_coords();

}  // namespace tensorhash::backend
