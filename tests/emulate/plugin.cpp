// libtensorhash_emulated.so: emulated devices for tests, "emu:0" and "emu:1". It is never part of a
// package. TENSORHASH_EMULATED_DEVICES is another number of devices. With
// TENSORHASH_EMULATED_PEERS=0 they cannot read each other's memory.
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "backend/plugins.hpp"
#include "emulate/emulated_tables.hpp"
#include "tensorhash/version.hpp"

namespace tensorhash::emulate {
namespace {

std::uint64_t setting(char const* name, std::uint64_t otherwise) {
    char const* const text = std::getenv(name);
    return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

// Never freed: tensors may outlive every other global variable.
LazyDevices& the_devices() {
    // Another seed is another order of streams.
    static LazyDevices& devices =
        *new LazyDevices(static_cast<int>(setting("TENSORHASH_EMULATED_DEVICES", 2)),
                         setting("TENSORHASH_EMULATED_SEED", 1));
    return devices;
}

EmulatedBackend& the_backend() {
    static EmulatedBackend& backend =
        make_emulated_backend(the_devices(), setting("TENSORHASH_EMULATED_PEERS", 1) != 0);
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
/// How often the host waited for a device.
TH_PLUGIN_API std::size_t emulated_waits(int device) {
    return tensorhash::emulate::the_devices().waits(device);
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
