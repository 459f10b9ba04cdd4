// libtensorhash_emulated.so: two emulated devices for tests, "emu:0" and "emu:1". It is never part
// of a package.
#include <cstring>
#include <stdexcept>

#include "backend/plugins.hpp"
#include "emulate/emulated_tables.hpp"
#include "tensorhash/version.hpp"

namespace tensorhash::emulate {
namespace {

// Never freed: tensors may outlive every other global variable.
LazyDevices& the_devices() {
    static LazyDevices& devices = *new LazyDevices(2);
    return devices;
}

EmulatedBackend& the_backend() {
    static EmulatedBackend& backend = make_emulated_backend(the_devices());
    return backend;
}

}  // namespace
}  // namespace tensorhash::emulate

#define TH_PLUGIN_API extern "C" __attribute__((visibility("default")))

TH_PLUGIN_API tensorhash::backend::DeviceBackend* tensorhash_backend(char const* version) {
    return std::strcmp(version, TENSORHASH_VERSION) == 0 ? &tensorhash::emulate::the_backend()
                                                         : nullptr;
}

// What tests ask of the devices besides.

/// The number of allocations on a device.
TH_PLUGIN_API std::size_t emulated_live(int device) {
    return tensorhash::emulate::the_devices().live(device);
}
/// The number of queued functions that did not run.
TH_PLUGIN_API std::size_t emulated_pending(int device) {
    return tensorhash::emulate::the_devices().pending(device);
}
/// The order of streams from now on.
TH_PLUGIN_API void emulated_set_seed(std::uint64_t seed) {
    tensorhash::emulate::the_devices().set_seed(seed);
}
/// The handle of a new stream.
TH_PLUGIN_API std::uintptr_t emulated_make_stream(int device) {
    return tensorhash::emulate::kFirstHandle +
           tensorhash::emulate::the_devices().make_stream(device);
}
/// Queues work that fails, on the legacy stream.
TH_PLUGIN_API void emulated_fail(int device) {
    tensorhash::emulate::the_devices().put(static_cast<tensorhash::emulate::StreamId>(device),
                                           [] { throw std::runtime_error("a planted failure"); });
}
