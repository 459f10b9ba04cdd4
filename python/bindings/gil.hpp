// The GIL released around the core's work, and only there.
#pragma once

#include <nanobind/nanobind.h>

#include <utility>

namespace tensorhash::bindings {

/// Without the GIL from construction to destruction. A daemon thread that comes back when the
/// interpreter is already shutting down stays here for good, as in Python 3.14; before that
/// version Python ends such a thread by an unwind that C++ destructors cannot let through.
class ReleasedGil {
public:
    ReleasedGil() noexcept : state_(PyEval_SaveThread()) {}
    ReleasedGil(ReleasedGil const&) = delete;
    ReleasedGil& operator=(ReleasedGil const&) = delete;
    ~ReleasedGil();

private:
    PyThreadState* state_;
};

/// Runs `work` with the GIL released; it must not touch a Python object.
template <class Work>
auto without_gil(Work&& work) {
    ReleasedGil released;
    return std::forward<Work>(work)();
}

}  // namespace tensorhash::bindings
