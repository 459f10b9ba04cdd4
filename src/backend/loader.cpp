// The table of back ends by device type. Back ends register themselves, so it names none.
#include "backend/loader.hpp"

#include <array>
#include <atomic>

namespace tensorhash::backend {
namespace {

// Constant-initialised, so that a back end can register before any constructor has run.
constinit std::array<std::atomic<DeviceBackend*>, kDeviceTypes> backends{};

}  // namespace

DeviceBackend& backend_for(Device device, std::string_view argument) {
    // Pairs with register_backend().
    auto* const found =
        backends[static_cast<std::size_t>(device.type)].load(std::memory_order_acquire);
    if (found == nullptr) {
        fail_no_backend(device, argument);
    }
    return *found;
}

void register_backend(Device::Type type, DeviceBackend* backend) noexcept {
    // Pairs with backend_for().
    backends[static_cast<std::size_t>(type)].store(backend, std::memory_order_release);
    set_allocator(type, backend != nullptr ? &backend->memory() : nullptr);
}

}  // namespace tensorhash::backend
