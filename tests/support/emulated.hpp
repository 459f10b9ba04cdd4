// The emulated devices as the tests load them: from the plugin, through the loader.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensorhash/stream.hpp"

namespace th_test {

/// Functions of the plugin; see tests/emulate/plugin.cpp.
struct EmulatedDevices {
    std::size_t (*live)(int device);
    std::size_t (*pending)(int device);
    std::size_t (*waits)(int device);
    void (*set_seed)(std::uint64_t seed);
    std::uintptr_t (*make_stream)(int device);
    void (*fail)(int device);
};

/// Loads the plugin on the first call. "emu:0" and "emu:1" exist from then on.
EmulatedDevices const& emulated_devices();

/// An emulated device.
inline tensorhash::Device emu(int id) {
    emulated_devices();
    return {tensorhash::Device::Type::Emulated, id};
}

}  // namespace th_test
