// CudaQueue: a GPU as the device layer's Queue. Work goes to the stream that the caller uses.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>

#include "device/queue.hpp"
#include "device/segments.hpp"

#include "cuda/gpu.hpp"
#include "cuda/launch.hpp"
#include "cuda/primitives.hpp"

namespace tensorhash::cuda {

/// Calls that a change may make after its last chance to fail do not throw: their failures are
/// noted, and the next call reports them.
class CudaQueue {
public:
    using Event = EventPtr;

    explicit CudaQueue(Gpu& gpu) : gpu_(&gpu) {}

    /// Other streams may have the same handle later, but never the same number.
    std::uintptr_t stream() const noexcept {
        unsigned long long number = 0;
        enqueue("cudaStreamGetId",
                [&](cudaStream_t stream) { return cudaStreamGetId(stream, &number); });
        return static_cast<std::uintptr_t>(number);
    }

    void* allocate(std::size_t bytes) {
        gpu_->check();
        void* const data = try_allocate(bytes);
        gpu_->check();
        if (data == nullptr) {
            throw std::bad_alloc();
        }
        return data;
    }
    void release(void* data) noexcept {
        enqueue("cudaFreeAsync", [&](cudaStream_t stream) { return cudaFreeAsync(data, stream); });
    }
    void fill(void* data, int byte, std::size_t bytes) noexcept {
        enqueue("cudaMemsetAsync", [&](cudaStream_t stream) {
            return bytes != 0 ? cudaMemsetAsync(data, byte, bytes, stream) : cudaSuccess;
        });
    }
    void copy(void* to, void const* from, std::size_t bytes, device::Copy kind) noexcept {
        enqueue("cudaMemcpyAsync", [&](cudaStream_t stream) {
            if (bytes == 0) {
                return cudaSuccess;
            }
            return kind == device::Copy::In
                       ? gpu_->staging().copy_in(to, from, bytes, stream)
                       : cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream);
        });
    }
    void read_back(void* to, void const* from, std::size_t bytes) {
        enqueue("a copy to the host", [&](cudaStream_t stream) {
            return gpu_->staging().copy_out(to, from, bytes, stream);
        });
        gpu_->check();
    }

    template <class Body>
    void launch(std::uint64_t threads, Body const& body) noexcept {
        if (threads == 0) {
            return;
        }
        gpu_->queued(__PRETTY_FUNCTION__);
        enqueue("cudaLaunchKernel",
                [&](cudaStream_t stream) { return start(body, grid_for<Body>(threads, stream)); });
    }

    template <class T>
    void scan(T* counts, std::uint64_t size, T* total) noexcept {
        if (size <= kOneBlock || !scan_by_cub(counts, size, total)) {
            launch(1, device::ScanCounts<T>{counts, total, size});
        }
    }

    std::size_t sort_bytes(std::uint64_t count) {
        gpu_->check();
        std::size_t bytes = 0;
        enqueue("cub::DeviceRadixSort",
                [&](cudaStream_t) { return cuda::sort_bytes(count, bytes); });
        gpu_->check();
        return bytes;
    }
    void sort_pairs(std::uint32_t* keys, std::uint32_t* values, std::uint64_t count, int bits,
                    void* scratch, std::size_t scratch_bytes) noexcept {
        enqueue("cub::DeviceRadixSort", [&](cudaStream_t stream) {
            return cuda::sort_pairs({scratch, scratch_bytes}, keys, values, count, bits, stream);
        });
    }

    Event record() noexcept { return gpu_->record(gpu_->stream()); }
    void wait(Event const& event) noexcept { gpu_->wait(gpu_->stream(), event); }

private:
    /// Up to this many counts one block of our own scans. It needs no memory, so it also runs if
    /// there is none for CUB.
    static constexpr std::uint64_t kOneBlock = std::uint64_t{1} << 14;

    template <class Call>
    bool enqueue(char const* name, Call const& call) const noexcept {
        if (!gpu_->is_usable()) {
            return false;
        }
        DeviceGuard const guard(gpu_->id());
        return gpu_->note(call(gpu_->stream()), name);
    }

    template <class Body>
    Launch grid_for(std::uint64_t threads, cudaStream_t stream) const noexcept {
        if constexpr (requires { Body::kThreads; }) {
            return {1, Body::kThreads, stream};
        } else {
            std::uint64_t const blocks = (threads + kBlockThreads - 1) / kBlockThreads;
            return {static_cast<unsigned>(std::min<std::uint64_t>(blocks, gpu_->most_blocks())),
                    kBlockThreads, stream};
        }
    }

    /// Null if there is no memory.
    void* try_allocate(std::size_t bytes) noexcept {
        void* data = nullptr;
        enqueue("cudaMallocFromPoolAsync", [&](cudaStream_t stream) {
            cudaError_t const status = cudaMallocFromPoolAsync(
                &data, std::max<std::size_t>(bytes, 1), gpu_->pool(), stream);
            if (status == cudaErrorMemoryAllocation) {
                cudaGetLastError();  // the caller reports it
                data = nullptr;
                return cudaSuccess;
            }
            return status;
        });
        return data;
    }

    /// False if there is no memory for it.
    template <class T>
    bool scan_by_cub(T* counts, std::uint64_t size, T* total) noexcept {
        constexpr std::size_t kPair = 256;  // the last count before and after, to sum them
        std::size_t bytes = 0;
        enqueue("cub::DeviceScan", [&](cudaStream_t) { return scan_bytes<T>(size, bytes); });
        auto* const scratch = static_cast<unsigned char*>(try_allocate(kPair + bytes));
        if (scratch == nullptr) {
            return false;
        }
        T* const pair = reinterpret_cast<T*>(scratch);
        copy(pair, counts + size - 1, sizeof(T), device::Copy::Within);
        enqueue("cub::DeviceScan", [&](cudaStream_t stream) {
            return cuda::scan({scratch + kPair, bytes}, counts, size, stream);
        });
        copy(pair + 1, counts + size - 1, sizeof(T), device::Copy::Within);
        if (total != nullptr) {
            launch(1, device::ScanCounts<T>{pair, total, 2});
        }
        release(scratch);
        return true;
    }

    Gpu* gpu_;
};

static_assert(device::Queue<CudaQueue>);

}  // namespace tensorhash::cuda
