// The emulated devices as the tests load them: from the plugin, through the loader.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>

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

/// Skips a test where Boost.Context is missing: emulated devices have no tables and no coordinates
/// then. In CI that is a failure.
#define TH_SKIP_UNLESS_EMULATED(has_them)                                                        \
    if (!(has_them)) {                                                                           \
        if (std::getenv("CI") != nullptr) FAIL() << "emulated devices need Boost.Context";       \
        GTEST_SKIP() << "emulated devices have no tables and coordinates without Boost.Context"; \
    }
