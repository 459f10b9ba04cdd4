// Takes the GIL back, also while the interpreter is shutting down.
#include "gil.hpp"

#if defined(__GLIBCXX__)
#include <cxxabi.h>
#include <unistd.h>
#endif

namespace tensorhash::bindings {

#if defined(__GLIBCXX__)

ReleasedGil::~ReleasedGil() {
    try {
        PyEval_RestoreThread(state_);
    } catch (abi::__forced_unwind const&) {
        // A forced unwind must not be swallowed, and must not leave a destructor. So wait until the
        // process ends.
        for (;;) pause();
    }
}

#else

ReleasedGil::~ReleasedGil() { PyEval_RestoreThread(state_); }

#endif

}  // namespace tensorhash::bindings
