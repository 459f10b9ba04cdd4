// The one kernel: a body is a struct of its arguments, and this runs it.
#pragma once

#include <type_traits>

#include "device/grid.hpp"

namespace tensorhash::cuda {

/// Threads per block, unless a body has its own number.
inline constexpr unsigned kThreads = 256;

// With the number of threads alone, ptxas spills registers in some bodies to fit more blocks.
#if defined(__clang__)
#define TH_LAUNCH_BOUNDS
#else
#define TH_LAUNCH_BOUNDS __launch_bounds__(kThreads, 1)
#endif

template <class Body>
__global__ void TH_LAUNCH_BOUNDS run(Body const body) {
    if constexpr (std::is_empty_v<typename Body::Shared>) {
        typename Body::Shared nothing;
        body(nothing);
    } else {
        __shared__ typename Body::Shared shared;
        body(shared);
    }
}

}  // namespace tensorhash::cuda
