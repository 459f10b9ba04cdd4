// The table of back ends by device type. Back ends register themselves, so it names none.
#include "backend/loader.hpp"

#include "tensorhash/device_cache.hpp"

#include <array>
#include <atomic>

namespace tensorhash::backend {
namespace {

// Constant-initialised, so that a back end can register before any constructor has run.
constinit std::array<std::atomic<DeviceBackend*>, kDeviceTypes> backends{};

}  // namespace

DeviceBackend& backend_for(Device device, std::string_view argument) {
    if (!device.is_cpu()) {
        require_usable(device, argument);
    }
    return *find_backend(device.type);
}

DeviceBackend* find_backend(Device::Type type) noexcept {
    // Pairs with register_backend().
    return backends[static_cast<std::size_t>(type)].load(std::memory_order_acquire);
}

void register_backend(Device::Type type, DeviceBackend* backend) noexcept {
    // Pairs with find_backend().
    backends[static_cast<std::size_t>(type)].store(backend, std::memory_order_release);
    set_allocator(type, backend);
}

}  // namespace tensorhash::backend

namespace tensorhash {

void release_cache(Device device) { backend::backend_for(device, "device").release_cache(device); }

}  // namespace tensorhash
