// Gpu: what the plugin keeps for one device: its memory pool, its events, pinned memory, and the
// first failure.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "cuda/staging.hpp"
#include "tensorhash/stream.hpp"

namespace tensorhash::cuda {

/// Until the end of the scope, calls of this thread go to this device.
class DeviceGuard {
public:
    explicit DeviceGuard(int device) noexcept;
    ~DeviceGuard();
    DeviceGuard(DeviceGuard const&) = delete;
    DeviceGuard& operator=(DeviceGuard const&) = delete;

private:
    int before_ = -1;  // -1: it was this device already
};

/// DLPack's numbers of streams are CUDA's own handles: pointers, or small numbers.
inline cudaStream_t handle_of(Stream stream) noexcept {
    static_assert(kLegacyStream == 1 && kPerThreadStream == 2);
    return reinterpret_cast<cudaStream_t>(stream.handle);  // NOLINT(performance-no-int-to-ptr)
}

using EventPtr = std::shared_ptr<CUevent_st>;

/// Any thread may call. Work that cannot throw notes its failure here, and is dropped from then on:
/// the content of the device's memory is no longer known.
class Gpu {
public:
    /// Made on first use and never freed: memory may outlive every other global variable.
    static Gpu& of(int id);

    int id() const noexcept { return id_; }
    Device device() const noexcept { return {Device::Type::Cuda, id_}; }
    /// The stream that calls of this thread use.
    cudaStream_t stream() const noexcept { return handle_of(current_stream(device())); }
    cudaMemPool_t pool() const noexcept { return pool_; }
    Staging& staging() noexcept { return staging_; }
    /// More blocks than this are not resident at once; bodies loop over their rows instead.
    unsigned most_blocks() const noexcept { return most_blocks_; }

    /// False after a failure, and in a forked child.
    bool is_usable() const noexcept;
    /// Is `status` success? Otherwise notes it, unless there was a failure before.
    bool note(cudaError_t status, char const* call) noexcept;
    /// Remembers the name of a launch, for the message of a later failure.
    void queued(char const* launch) noexcept;
    /// Throws DeviceError if a call failed.
    void check() const;
    /// The same, and asks the driver whether queued work has failed meanwhile. Does not wait.
    void check_queued();

    /// After the work that `stream` has so far. Null if the device failed.
    EventPtr record(cudaStream_t stream) noexcept;
    void wait(cudaStream_t stream, EventPtr const& event) noexcept;
    void synchronize(cudaStream_t stream);
    /// Lets the other device read and write the memory of this one. False if the machine cannot do
    /// that.
    bool allow_peer(int other) noexcept;
    /// Returns unused memory to the driver.
    void release_cache();

private:
    static constexpr std::size_t kNames = 4;

    explicit Gpu(int id);
    cudaEvent_t take_event() noexcept;
    void give_event(cudaEvent_t event) noexcept;
    [[noreturn]] void fail() const;

    int id_;
    unsigned most_blocks_ = 0;
    cudaMemPool_t pool_ = nullptr;
    Staging staging_;
    std::mutex mutex_;
    std::vector<cudaEvent_t> idle_events_;
    std::map<int, bool> peers_;  // devices that wanted this memory, and whether they may use it

    std::array<std::atomic<char const*>, kNames> launches_{};  // the last ones, a ring
    std::atomic<unsigned> next_launch_ = 0;
    // The first failure. `has_failed_` is set last.
    std::atomic<bool> has_failed_ = false;
    cudaError_t failure_ = cudaSuccess;
    char const* failed_call_ = nullptr;
    std::array<char const*, kNames> failed_launches_{};
};

/// For example "an illegal memory access was encountered (error 700)".
std::string describe(cudaError_t error);

}  // namespace tensorhash::cuda
