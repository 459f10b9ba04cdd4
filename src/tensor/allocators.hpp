// The table of allocators: how Tensor gets memory on a device without knowing the device.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <string_view>

#include "tensorhash/device.hpp"
#include "tensorhash/dtype.hpp"

namespace tensorhash {

/// Memory, and the object that frees it.
struct Allocation {
    void* data = nullptr;
    std::shared_ptr<void> owner;
};

/// Memory of one device type. On return, the work is done or queued on the caller's stream.
/// Allocators live as long as the process.
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

/// Throws DeviceError that names `argument`: no back end for such devices is loaded.
[[noreturn]] void fail_no_backend(Device device, std::string_view argument);

}  // namespace tensorhash
