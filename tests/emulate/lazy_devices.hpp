// Emulated devices: streams are queues of functions, and nothing runs until something waits. Then
// streams go on in an order drawn from a seed, as far as events allow. So a missing wait, a host
// buffer that is reused too early, or a pointer that is followed on the wrong side fails here,
// where a real device forgives it most of the time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "emulate/device_memory.hpp"

namespace tensorhash::emulate {

using StreamId = std::uint32_t;

/// A point in a stream's work. `happened` is set when the stream gets there.
struct LazyEvent {
    StreamId stream = 0;
    bool happened = false;
};
using LazyEventPtr = std::shared_ptr<LazyEvent>;

/// Several devices with their own memories. Any thread may call; work runs on the thread that
/// waits.
class LazyDevices {
public:
    explicit LazyDevices(int devices, std::uint64_t seed = 1,
                         std::size_t reserved = std::size_t{1} << 30);

    int count() const noexcept { return static_cast<int>(memories_.size()); }
    /// A new stream of a device. Device d begins with one stream, d.
    StreamId make_stream(int device);
    int device_of(StreamId stream) const;
    /// The next orders of streams follow from this.
    void set_seed(std::uint64_t seed);

    void* allocate(int device, std::size_t bytes);
    /// Memory is freed when the stream gets there.
    void release(StreamId stream, void* data);
    /// Queues work, which may use the memory of its device only. Its first exception fails the
    /// device: later work of it is dropped.
    void put(StreamId stream, std::function<void()> work);
    /// Queues a copy, which may also use the memory of device `peer`.
    void put_copy(StreamId stream, int peer, std::function<void()> work);

    LazyEventPtr record(StreamId stream);
    /// Nothing to do for an event of the stream itself.
    void wait(StreamId stream, LazyEventPtr event);
    /// Runs work until the stream has none left; that of other streams as the seed says. Throws
    /// std::runtime_error if the device failed, or if the stream waits for an event that cannot
    /// happen.
    void synchronize(StreamId stream);
    /// Throws std::runtime_error if work of the device failed.
    void check(int device);

    bool is_device_memory(void const* data) const noexcept;
    /// The number of allocations that were not freed.
    std::size_t live(int device);
    /// The number of queued functions that did not run.
    std::size_t pending(int device);
    /// How often the host waited for a stream of the device.
    std::size_t waits(int device);

private:
    struct Step {
        std::function<void()> work;
        LazyEventPtr after = nullptr;  // null: any time
        bool always = false;           // also after a failure
        int peer = -1;                 // may use the memory of this device too
    };
    struct Lane {
        int device;
        std::deque<Step> steps;
    };
    bool can_go_on(Lane const& lane) const;
    void run_one(StreamId wanted);
    void run_step(Lane& lane);
    void put_always(StreamId stream, std::function<void()> work, LazyEventPtr after = nullptr);
    /// Opens the memories of these devices and closes the others. -1 is no device.
    void open_only(int device, int peer);

    mutable std::recursive_mutex mutex_;
    std::vector<std::unique_ptr<DeviceMemory>> memories_;
    std::deque<Lane> lanes_;             // by StreamId
    std::vector<std::string> failures_;  // by device; empty: none
    std::vector<std::size_t> waits_;     // by device
    std::uint64_t random_;
};

}  // namespace tensorhash::emulate
