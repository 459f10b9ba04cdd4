// Binds the core's functions on devices and plugins.
#include "tensorhash/device.hpp"

#include <nanobind/stl/string.h>

#include <string>

#include "bindings.hpp"
#include "tensorhash/device_cache.hpp"
#include "tensorhash/stream.hpp"

namespace tensorhash::bindings {
namespace {

Device::Type type_of(std::string const& kind) {
    if (kind == "cpu") return Device::Type::Cpu;
    return kind == "cuda" ? Device::Type::Cuda : Device::Type::Emulated;
}

}  // namespace

void bind_devices(nb::module_& m) {
    m.def(
        "parse_device",
        [](std::string const& text, std::string const& argument) {
            Device const device = Device::parse(text);
            require_usable(device, argument);
            return to_string(device);
        },
        nb::arg("text"), nb::arg("argument"),
        "The device's canonical name. Raises if this process cannot use the device.");
    m.def(
        "device_count", [](std::string const& kind) { return device_count(type_of(kind)); },
        nb::arg("kind"), "The number of devices of a kind: \"cpu\", \"cuda\" or \"emu\".");
    m.def(
        "device_status", [](std::string const& kind) { return device_status(type_of(kind)); },
        nb::arg("kind"), "The devices of a kind or, if there are none, why.");
    m.def(
        "synchronize",
        [](std::string const& device) { without_gil([&] { synchronize(Device::parse(device)); }); },
        nb::arg("device"), "Waits for the work on the thread's stream of a device.");
    m.def(
        "release_cache",
        [](std::string const& device) {
            without_gil([&] { release_cache(Device::parse(device)); });
        },
        nb::arg("device"), "Frees the memory that a device keeps for later allocations.");
    m.def("add_plugin_folder", &add_plugin_folder, nb::arg("folder"),
          "Looks for plugins in this folder too.");
}

}  // namespace tensorhash::bindings
