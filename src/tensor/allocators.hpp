// The table of allocators: how Tensor gets memory on a device without knowing the device.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <string_view>

#include "tensorhash/device.hpp"
#include "tensorhash/dtype.hpp"
#include "tensorhash/stream.hpp"

namespace tensorhash {

/// Memory, and the object that frees it.
struct Allocation {
    void* data = nullptr;
    std::shared_ptr<void> owner;
};

/// Memory and streams of one type of device. On return, the work is done or queued on
/// current_stream(device). Allocators live as long as the process.
class Allocator {
public:
    /// Uninitialised memory, aligned to 64 bytes. Throws std::bad_alloc.
    virtual Allocation allocate(std::size_t bytes, Device device) = 0;
    virtual void zero(void* data, std::size_t bytes, Device device) = 0;
    /// Copies within one device.
    virtual void copy(void* to, void const* from, std::size_t bytes, Device device) = 0;
    /// Fills contiguous `to` with the elements at `from`, strides in bytes, in C order.
    virtual void copy_strided(void* to, void const* from, Shape const& shape,
                              Shape const& byte_strides, std::size_t element_bytes,
                              Device device) = 0;
    /// Copies between two devices of this type, or one of them and the CPU. Memory of the CPU may
    /// be changed or read as soon as this returns.
    virtual void copy_between(void* to, Device to_device, void const* from, Device from_device,
                              std::size_t bytes) = 0;

    /// Marks the end of the work that `stream` has so far.
    virtual Event record(Stream stream) = 0;
    /// Makes later work of `stream` wait for `event`.
    virtual void wait(Stream stream, Event const& event) = 0;
    /// Returns when the work of `stream` is done. Throws DeviceError if some of it failed.
    virtual void synchronize(Stream stream) = 0;

    /// The number of devices, with ids from 0 on. 0 if the machine has none or no driver for them.
    virtual int device_count() noexcept = 0;
    /// Throws DeviceError if work on `device` failed earlier: its memory has no known content.
    virtual void check(Device device) = 0;

protected:
    ~Allocator() = default;
};

/// The table, indexed by Device::Type. Each back end fills its entry when it loads; the CPU's loads
/// with the library.
using AllocatorTable = std::array<std::atomic<Allocator*>, kDeviceTypes>;
extern AllocatorTable allocators;

/// Null if no back end for such devices is loaded.
inline Allocator* find_allocator(Device::Type type) noexcept {
    // Pairs with set_allocator().
    return allocators[static_cast<std::size_t>(type)].load(std::memory_order_acquire);
}
/// register_backend() calls this. Null removes the allocator.
inline void set_allocator(Device::Type type, Allocator* allocator) noexcept {
    // Pairs with find_allocator().
    allocators[static_cast<std::size_t>(type)].store(allocator, std::memory_order_release);
}

/// The allocator of a usable device. Throws DeviceError as require_usable() does.
Allocator& memory_of(Device device, std::string_view argument);

// Devices besides the CPU come from plugins. src/backend/ defines these two.

/// Loads the plugins that were found and not tried yet.
void load_plugins();
/// Throws a DeviceError that names `argument` and says why there is no such device.
[[noreturn]] void fail_no_device(Device device, std::string_view argument);

/// Throws a DeviceError that names `argument` unless `device` is the CPU, the only one that has
/// `what`, such as "bounded tables".
void require_cpu(Device device, std::string_view argument, std::string_view what);

/// Throws a DeviceError that names `argument` unless arrays of `device` are in host memory.
void require_host(Device device, std::string_view argument);

}  // namespace tensorhash
