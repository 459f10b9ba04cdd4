// Stands in for emulated_tables.cpp where Boost.Context is missing.
#include "emulate/emulated_tables.hpp"

namespace tensorhash::emulate {

EmulatedBackend& make_emulated_backend(LazyDevices& devices, bool has_peers) {
    return *new EmulatedBackend(devices, has_peers);
}

}  // namespace tensorhash::emulate
