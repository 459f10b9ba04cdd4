// Copies through chunks of pinned memory: the host works on one chunk, the device on another.
#include "cuda/staging.hpp"

#include <algorithm>
#include <cstring>

namespace tensorhash::cuda {

cudaError_t Staging::make(Chunk& chunk) {
    if (cudaError_t const status = cudaMallocHost(&chunk.data, kChunkBytes);
        status != cudaSuccess) {
        return status;
    }
    cudaError_t const status = cudaEventCreateWithFlags(&chunk.used, cudaEventDisableTiming);
    if (status != cudaSuccess) {
        cudaFreeHost(chunk.data);
    }
    return status;
}

/// The oldest chunk if it is free, else a new one. If many are on their way, waits for the oldest.
cudaError_t Staging::take(Chunk& chunk) {
    {
        std::scoped_lock const guard(mutex_);
        bool const is_free =
            !chunks_.empty() && cudaEventQuery(chunks_.front().used) == cudaSuccess;
        if (chunks_.empty() || (!is_free && chunks_.size() < kMostChunks)) {
            return make(chunk);
        }
        chunk = chunks_.front();
        chunks_.pop_front();
    }
    cudaError_t const status = cudaEventSynchronize(chunk.used);
    if (status != cudaSuccess) {
        give(chunk);
    }
    return status;
}

void Staging::give(Chunk const& chunk) {
    std::scoped_lock const guard(mutex_);
    chunks_.push_back(chunk);
}

cudaError_t Staging::copy_in(void* to, void const* from, std::size_t bytes, cudaStream_t stream) {
    cudaError_t status = cudaSuccess;
    for (std::size_t at = 0; at < bytes && status == cudaSuccess; at += kChunkBytes) {
        std::size_t const size = std::min(kChunkBytes, bytes - at);
        Chunk chunk;
        status = take(chunk);
        if (status != cudaSuccess) {
            break;
        }
        std::memcpy(chunk.data, static_cast<unsigned char const*>(from) + at, size);
        status = cudaMemcpyAsync(static_cast<unsigned char*>(to) + at, chunk.data, size,
                                 cudaMemcpyHostToDevice, stream);
        if (status == cudaSuccess) {
            status = cudaEventRecord(chunk.used, stream);
        }
        give(chunk);
    }
    return status;
}

cudaError_t Staging::arrive(Arriving const& piece) {
    cudaError_t const status = cudaEventSynchronize(piece.chunk.used);
    if (status == cudaSuccess) {
        std::memcpy(piece.to, piece.chunk.data, piece.bytes);
    }
    give(piece.chunk);
    return status;
}

// The host empties one chunk while the device fills the next.
cudaError_t Staging::copy_out(void* to, void const* from, std::size_t bytes, cudaStream_t stream) {
    if (bytes == 0) {
        return cudaStreamSynchronize(stream);
    }
    cudaError_t status = cudaSuccess;
    std::deque<Arriving> arriving;
    for (std::size_t at = 0; at < bytes && status == cudaSuccess; at += kChunkBytes) {
        if (arriving.size() == 2) {
            status = arrive(arriving.front());
            arriving.pop_front();
        }
        Chunk chunk;
        status = status == cudaSuccess ? take(chunk) : status;
        if (status != cudaSuccess) {
            break;
        }
        std::size_t const size = std::min(kChunkBytes, bytes - at);
        status = cudaMemcpyAsync(chunk.data, static_cast<unsigned char const*>(from) + at, size,
                                 cudaMemcpyDeviceToHost, stream);
        if (status == cudaSuccess) {
            status = cudaEventRecord(chunk.used, stream);
        }
        arriving.push_back({chunk, static_cast<unsigned char*>(to) + at, size});
    }
    for (Arriving const& piece : arriving) {
        cudaError_t const arrived = arrive(piece);
        status = status == cudaSuccess ? arrived : status;
    }
    return status;
}

}  // namespace tensorhash::cuda
