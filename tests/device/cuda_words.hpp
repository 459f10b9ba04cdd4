// CUDA's words for a host compiler, so that fibers run a user's kernel as it is. Included after the
// emulator and before the kernel.
#pragma once

#if !defined(__CUDACC__)

#include "device/host_grid.hpp"

namespace th_test {
struct OnlyX {
    std::uint32_t x;
};
}  // namespace th_test

#define __global__ inline
#define threadIdx (th_test::OnlyX{tensorhash::device::host::place().thread})
#define blockIdx (th_test::OnlyX{tensorhash::device::host::place().block})
#define blockDim (th_test::OnlyX{tensorhash::device::host::place().block_size})
#define gridDim (th_test::OnlyX{tensorhash::device::host::place().blocks})

#endif
