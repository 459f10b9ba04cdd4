// LazyQueue: an emulated device as the device layer's Queue. Scan and sort are serial loops that
// define the results; kernel bodies run as fibers.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "device/queue.hpp"
#include "emulate/emulated_backend.hpp"
#include "emulate/fibers.hpp"

namespace tensorhash::emulate {

class LazyQueue {
public:
    using Event = LazyEventPtr;

    LazyQueue(EmulatedBackend& backend, Device device, Options options = {})
        : backend_(&backend), device_(device), options_(options) {}

    StreamId stream() const { return backend_->current(device_); }
    void* allocate(std::size_t bytes) { return devices().allocate(device_.id, bytes); }
    void release(void* data) {
        if (!is_forked()) {
            devices().release(stream(), data);
        }
    }
    void fill(void* data, int byte, std::size_t bytes) {
        put([=] { std::memset(data, byte, bytes); });
    }

    void copy(void* to, void const* from, std::size_t bytes, device::Copy kind) {
        if (kind != device::Copy::In) {
            put([=] { std::memcpy(to, from, bytes); });
            return;
        }
        auto const* const first = static_cast<unsigned char const*>(from);
        put([to, staged = std::vector<unsigned char>(first, first + bytes)] {
            std::memcpy(to, staged.data(), staged.size());
        });
    }
    void read_back(void* to, void const* from, std::size_t bytes) {
        copy(to, from, bytes, device::Copy::Out);
        backend_->synchronize(device_, stream());
    }

    /// Each launch draws another order of its threads.
    template <class Body>
    void launch(std::uint64_t threads, Body const& body) {
        Options options = options_;
        options.seed += launches_.fetch_add(1, std::memory_order_relaxed);
        put([threads, body, options] { run_body(threads, body, options); });
    }

    template <class T>
    void scan(T* counts, std::uint64_t size, T* total) {
        put([=] {
            T sum = 0;
            for (std::uint64_t i = 0; i < size; ++i) {
                sum += std::exchange(counts[i], sum);
            }
            if (total != nullptr) {
                *total = sum;
            }
        });
    }

    std::size_t sort_bytes(std::uint64_t) { return 0; }
    void sort_pairs(std::uint32_t* keys, std::uint32_t* values, std::uint64_t size, int bits,
                    void* = nullptr, std::size_t = 0) {
        put([=] {
            std::uint32_t const low = bits < 32 ? (std::uint32_t{1} << bits) - 1 : UINT32_MAX;
            std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs(size);
            for (std::uint64_t i = 0; i < size; ++i) {
                pairs[i] = {keys[i], values[i]};
            }
            std::stable_sort(pairs.begin(), pairs.end(), [low](auto const& a, auto const& b) {
                return (a.first & low) < (b.first & low);
            });
            for (std::uint64_t i = 0; i < size; ++i) {
                keys[i] = pairs[i].first;
                values[i] = pairs[i].second;
            }
        });
    }

    Event record() {
        return is_forked() ? std::make_shared<LazyEvent>() : devices().record(stream());
    }
    void wait(Event const& event) {
        if (!is_forked()) {
            devices().wait(stream(), event);
        }
    }

private:
    /// A forked child owns nothing, and another thread may have held a lock when it began.
    bool is_forked() const { return getpid() != process_; }
    LazyDevices& devices() const { return backend_->devices(); }
    void put(std::function<void()> work) { devices().put(stream(), std::move(work)); }

    EmulatedBackend* backend_;
    Device device_;
    Options options_;
    pid_t process_ = getpid();
    std::atomic<std::uint64_t> launches_ = 0;
};

static_assert(device::Queue<LazyQueue>);

}  // namespace tensorhash::emulate
