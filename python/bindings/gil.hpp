// Releases the GIL while the core works.
#pragma once

#include <nanobind/nanobind.h>

#include <utility>

namespace tensorhash::bindings {

/// Releases the GIL from construction to destruction. A daemon thread that asks for it while the
/// interpreter shuts down waits forever, as in Python 3.14. Older versions end such a thread by
/// unwinding its stack, which is not allowed through a C++ destructor.
class ReleasedGil {
public:
    ReleasedGil() noexcept : state_(PyEval_SaveThread()) {}
    ReleasedGil(ReleasedGil const&) = delete;
    ReleasedGil& operator=(ReleasedGil const&) = delete;
    ~ReleasedGil();

private:
    PyThreadState* state_;
};

/// Runs `work` without the GIL. `work` must not touch a Python object.
template <class Work>
auto without_gil(Work&& work) {
    ReleasedGil released;
    return std::forward<Work>(work)();
}

}  // namespace tensorhash::bindings
