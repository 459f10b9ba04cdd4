// The loader: picks the back end of a device.
#pragma once

#include <string_view>

#include "backend/device_backend.hpp"

namespace tensorhash::backend {

/// The back end for devices of this type. If none is loaded, throws a DeviceError that names
/// `argument`.
DeviceBackend& backend_for(Device device, std::string_view argument);

/// The CPU's back end, which is always there. src/table/ defines it.
DeviceBackend& cpu_backend() noexcept;
/// The CPU's coordinate operations. src/coords/ defines them.
CoordsBackend const& cpu_coords();

}  // namespace tensorhash::backend
