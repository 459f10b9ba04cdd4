// Scan and sort by CUB. Their scratch memory comes from the caller.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace tensorhash::cuda {

/// Scratch memory, which an algorithm gets whole.
struct Scratch {
    void* data;
    std::size_t bytes;
};

/// The scratch bytes for `count` counts of type T: std::uint32_t or std::uint64_t.
template <class T>
cudaError_t scan_bytes(std::uint64_t count, std::size_t& bytes);
/// Replaces counts by the sums of those before them.
template <class T>
cudaError_t scan(Scratch scratch, T* counts, std::uint64_t count, cudaStream_t stream);

cudaError_t sort_bytes(std::uint64_t count, std::size_t& bytes);
/// Sorts by the lowest `bits` bits of the keys; values follow. Stable.
cudaError_t sort_pairs(Scratch scratch, std::uint32_t* keys, std::uint32_t* values,
                       std::uint64_t count, int bits, cudaStream_t stream);

}  // namespace tensorhash::cuda
