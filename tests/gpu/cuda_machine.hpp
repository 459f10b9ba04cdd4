// CudaMachine: a GPU, measured with its own events.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "cuda/queue.hpp"

namespace th_gpu {

inline void require_success(cudaError_t status, char const* call) {
    if (status != cudaSuccess) {
        throw std::runtime_error(std::string(call) + ": " + cudaGetErrorString(status));
    }
}

class CudaMachine {
public:
    using Queue = tensorhash::cuda::CudaQueue;
    static constexpr bool kMeasures = true;
    static constexpr char const* kPrimitives = "CUB";

    explicit CudaMachine(int id)
        : gpu_(require_gpu(id)), queue_(gpu_), properties_(properties_of(id)) {
        require_success(cudaSetDevice(id), "cudaSetDevice");
        require_success(cudaEventCreate(&begin_), "cudaEventCreate");
        require_success(cudaEventCreate(&end_), "cudaEventCreate");
    }

    Queue& queue() { return queue_; }
    std::vector<std::pair<std::string, std::string>> describe() const {
        int driver = 0;
        int runtime = 0;
        require_success(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
        require_success(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
        return {{"device", properties_.name},
                {"architecture",
                 "sm_" + std::to_string(properties_.major) + std::to_string(properties_.minor)},
                {"multiprocessors", std::to_string(properties_.multiProcessorCount)},
                {"L2 cache", std::to_string(cache_bytes() >> 20) + " MiB"},
                {"memory", std::to_string(memory_bytes() >> 20) + " MiB"},
                {"driver", "CUDA " + version(driver)},
                {"runtime", "CUDA " + version(runtime)}};
    }
    std::uint64_t cache_bytes() const {
        return static_cast<std::uint64_t>(properties_.l2CacheSize);
    }
    std::uint64_t memory_bytes() const { return properties_.totalGlobalMem; }

    /// From the first to the last piece of the work that is queued.
    template <class Work>
    double seconds(Work const& work) {
        float milliseconds = 0;
        require_success(cudaEventRecord(begin_, gpu_.stream()), "cudaEventRecord");
        work();
        require_success(cudaEventRecord(end_, gpu_.stream()), "cudaEventRecord");
        require_success(cudaEventSynchronize(end_), "cudaEventSynchronize");
        require_success(cudaEventElapsedTime(&milliseconds, begin_, end_), "cudaEventElapsedTime");
        return milliseconds / 1e3;
    }

private:
    static tensorhash::cuda::Gpu& require_gpu(int id) {
        int count = 0;
        cudaError_t const status = cudaGetDeviceCount(&count);
        if (status != cudaSuccess || id >= count) {
            std::string const why = status != cudaSuccess
                                        ? cudaGetErrorString(status)
                                        : "it has " + std::to_string(count) + " CUDA devices";
            throw std::runtime_error("this machine has no cuda:" + std::to_string(id) + " (" + why +
                                     "), so nothing was measured");
        }
        return tensorhash::cuda::Gpu::of(id);
    }
    static cudaDeviceProp properties_of(int id) {
        cudaDeviceProp properties{};
        require_success(cudaGetDeviceProperties(&properties, id), "cudaGetDeviceProperties");
        return properties;
    }
    static std::string version(int number) {
        return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
    }

    tensorhash::cuda::Gpu& gpu_;
    Queue queue_;
    cudaDeviceProp properties_;
    cudaEvent_t begin_ = nullptr;
    cudaEvent_t end_ = nullptr;
};

}  // namespace th_gpu
