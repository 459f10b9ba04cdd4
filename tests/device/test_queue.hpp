// The queue that the tests of this folder run on. They are compiled twice: for fibers, and for
// interpreted PTX (tests/ptx).
#pragma once

#if defined(TH_BODIES_PTX)
#include "ptx/ptx_queue.hpp"
#else
#include "device/fiber_queue.hpp"
#endif

namespace th_test {

#if defined(TH_BODIES_PTX)
using TestQueue = PtxQueue;
#else
using TestQueue = FiberQueue;
#endif

}  // namespace th_test
