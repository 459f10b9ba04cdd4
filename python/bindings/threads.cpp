// Binds the core's functions on threads, cached memory and the instruction set.
#include "tensorhash/threads.hpp"

#include <nanobind/stl/string.h>

#include "bindings.hpp"
#include "tensorhash/memory.hpp"
#include "tensorhash/version.hpp"

namespace tensorhash::bindings {

void bind_threads(nb::module_& m) {
    m.def("num_threads", &num_threads, "The number of threads that a call may use.");
    m.def("set_num_threads", [](int n) { without_gil([&] { set_num_threads(n); }); }, nb::arg("n"));
    m.def(
        "release_memory",
        [] {
            std::size_t freed = 0;
            without_gil([&] { freed = release_memory(); });
            return freed;
        },
        "Returns cached memory to the system; the result is in bytes.");
    m.def("instruction_set", &instruction_set, "The instruction-set level of the CPU back end.");
}

}  // namespace tensorhash::bindings
