// Taking the GIL back, also when there is no interpreter left to come back to.
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
        // Neither swallowing nor passing on is allowed here; the end of the process ends the wait.
        for (;;) pause();
    }
}

#else

ReleasedGil::~ReleasedGil() { PyEval_RestoreThread(state_); }

#endif

}  // namespace tensorhash::bindings
