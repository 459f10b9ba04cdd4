// Threads, memory, devices and the instruction set: the free functions of the core.
#include "tensorhash/threads.hpp"

#include <nanobind/stl/string.h>

#include "bindings.hpp"
#include "tensorhash/device.hpp"
#include "tensorhash/memory.hpp"
#include "tensorhash/version.hpp"

namespace tensorhash::bindings {

void bind_threads(nb::module_& m) {
    m.def("num_threads", &num_threads, "Threads that a call may use.");
    m.def("set_num_threads", [](int n) { without_gil([&] { set_num_threads(n); }); }, nb::arg("n"));
    m.def(
        "release_memory",
        [] {
            std::size_t freed = 0;
            without_gil([&] { freed = release_memory(); });
            return freed;
        },
        "Gives memory that is kept for later back to the system.");
    m.def("instruction_set", &instruction_set, "The level of the CPU back end in use.");
    m.def(
        "parse_device",
        [](std::string const& text, std::string const& argument) {
            Device const device = Device::parse(text);
            require_usable(device, argument);
            return to_string(device);
        },
        nb::arg("text"), nb::arg("argument"),
        "The device's canonical name; raises unless tables can live there in this build.");
}

}  // namespace tensorhash::bindings
