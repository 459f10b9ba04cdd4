// What the files of the extension share: one bind function per bound class, and how to leave the GIL.
#pragma once

#include <nanobind/nanobind.h>

#include <utility>

namespace tensorhash::bindings {

namespace nb = nanobind;

void bind_errors(nb::module_& m);
void bind_tensor(nb::module_& m);
void bind_hash_map(nb::module_& m);
void bind_threads(nb::module_& m);

/// Runs the core's work with the GIL released. `work` must not touch a Python object.
template <class Work>
auto without_gil(Work&& work) {
    nb::gil_scoped_release released;
    return std::forward<Work>(work)();
}

}  // namespace tensorhash::bindings
