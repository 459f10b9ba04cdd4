// Staging: pinned memory through which copies between host and device go. So a copy to the device
// need not wait, and the host's memory may change as soon as the call returns.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <deque>
#include <mutex>

namespace tensorhash::cuda {

/// For one device, which must be the current one in every call. Any thread may call.
class Staging {
public:
    /// Both return what CUDA returned.
    cudaError_t copy_in(void* to, void const* from, std::size_t bytes, cudaStream_t stream);
    /// Waits until the stream has come this far.
    cudaError_t copy_out(void* to, void const* from, std::size_t bytes, cudaStream_t stream);

private:
    static constexpr std::size_t kChunkBytes = std::size_t{1} << 20;
    static constexpr std::size_t kMostChunks = 16;  // kept, besides those that calls hold

    /// Free once `used` has happened.
    struct Chunk {
        void* data = nullptr;
        cudaEvent_t used = nullptr;
    };
    /// A chunk on its way to the host.
    struct Arriving {
        Chunk chunk;
        unsigned char* to;
        std::size_t bytes;
    };

    cudaError_t take(Chunk& chunk);
    static cudaError_t make(Chunk& chunk);
    void give(Chunk const& chunk);
    cudaError_t arrive(Arriving const& piece);

    std::mutex mutex_;
    std::deque<Chunk> chunks_;  // the one that is free first comes first
};

}  // namespace tensorhash::cuda
