// How a kernel body starts. The .cu files define start() for every body of device/bodies.hpp, so
// that tables and back end are plain C++: a body that is not on the list does not link.
#pragma once

#include <cuda_runtime_api.h>

namespace tensorhash::cuda {

/// Threads per block, unless a body has its own number. Such a body runs in one block.
inline constexpr unsigned kBlockThreads = 256;

struct Launch {
    unsigned blocks;
    unsigned threads;  // per block
    cudaStream_t stream;
};

/// Queues a body. Returns what the launch failed with; later failures show up in later calls.
template <class Body>
cudaError_t start(Body const& body, Launch const& how);

}  // namespace tensorhash::cuda
