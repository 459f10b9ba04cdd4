// The only file that includes CUB.
#include "cuda/primitives.hpp"

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

namespace tensorhash::cuda {
namespace {

/// The sort's scratch memory: room for keys and values, then CUB's own.
struct SortLayout {
    std::size_t column;  // bytes of keys, and of values

    explicit SortLayout(std::uint64_t count)
        : column((count * sizeof(std::uint32_t) + 255) / 256 * 256) {}
    template <class T = unsigned char>
    T* at(void* scratch, std::size_t columns) const {
        return reinterpret_cast<T*>(static_cast<unsigned char*>(scratch) + columns * column);
    }
};

}  // namespace

template <class T>
cudaError_t scan_bytes(std::uint64_t count, std::size_t& bytes) {
    T* const none = nullptr;
    bytes = 0;
    return cub::DeviceScan::ExclusiveSum(nullptr, bytes, none, none, count);
}

template <class T>
cudaError_t scan(Scratch scratch, T* counts, std::uint64_t count, cudaStream_t stream) {
    return cub::DeviceScan::ExclusiveSum(scratch.data, scratch.bytes, counts, counts, count,
                                         stream);
}

template cudaError_t scan_bytes<std::uint32_t>(std::uint64_t, std::size_t&);
template cudaError_t scan_bytes<std::uint64_t>(std::uint64_t, std::size_t&);
template cudaError_t scan(Scratch, std::uint32_t*, std::uint64_t, cudaStream_t);
template cudaError_t scan(Scratch, std::uint64_t*, std::uint64_t, cudaStream_t);

cudaError_t sort_bytes(std::uint64_t count, std::size_t& bytes) {
    cub::DoubleBuffer<std::uint32_t> none;
    bytes = 0;
    cudaError_t const status = cub::DeviceRadixSort::SortPairs(nullptr, bytes, none, none, count);
    bytes += 2 * SortLayout(count).column;
    return status;
}

cudaError_t sort_pairs(Scratch scratch, std::uint32_t* keys, std::uint32_t* values,
                       std::uint64_t count, int bits, cudaStream_t stream) {
    SortLayout const layout(count);
    cub::DoubleBuffer<std::uint32_t> all_keys(keys, layout.at<std::uint32_t>(scratch.data, 0));
    cub::DoubleBuffer<std::uint32_t> all_values(values, layout.at<std::uint32_t>(scratch.data, 1));
    std::size_t own_bytes = scratch.bytes - 2 * layout.column;
    cudaError_t status = cub::DeviceRadixSort::SortPairs(
        layout.at(scratch.data, 2), own_bytes, all_keys, all_values, count, 0, bits, stream);
    auto const bring = [&](std::uint32_t* to, std::uint32_t const* from) {
        if (status == cudaSuccess && from != to) {
            status =
                cudaMemcpyAsync(to, from, count * sizeof *to, cudaMemcpyDeviceToDevice, stream);
        }
    };
    bring(keys, all_keys.Current());
    bring(values, all_values.Current());
    return status;
}

}  // namespace tensorhash::cuda
