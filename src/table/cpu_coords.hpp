// The CPU's coordinate operations, which its DeviceBackend returns. src/coords/ defines them.
#pragma once

namespace tensorhash::backend {

class CoordsBackend;

CoordsBackend const& cpu_coords();

}  // namespace tensorhash::backend
