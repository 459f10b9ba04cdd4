// The loader: picks the back end of a device.
#pragma once

#include <string_view>

#include "backend/device_backend.hpp"

namespace tensorhash::backend {

/// The back end for devices of this type. Loads plugins if it is not the CPU's. If there is none,
/// throws a DeviceError that names `argument`.
DeviceBackend& backend_for(Device device, std::string_view argument);

/// Makes `backend` the back end of these devices, and their allocator. Every back end
/// registers when it loads. The CPU's loads with the library, before constructors of global
/// variables run: a table may be a global variable. Null removes a back end.
void register_backend(Device::Type type, DeviceBackend* backend) noexcept;

/// Null if no back end for such devices is loaded.
DeviceBackend* find_backend(Device::Type type) noexcept;

}  // namespace tensorhash::backend
