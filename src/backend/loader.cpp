// Back ends by device type. Names the CPU's factory, but includes none of its headers.
#include "backend/loader.hpp"

#include <algorithm>
#include <iterator>

namespace tensorhash::backend {
namespace {

struct Entry {
    Device::Type type;
    DeviceBackend& (*factory)() noexcept;
};

constexpr Entry kBackends[] = {{Device::Type::Cpu, cpu_backend}};

}  // namespace

DeviceBackend& backend_for(Device device, std::string_view argument) {
    auto const* const found =
        std::find_if(std::begin(kBackends), std::end(kBackends),
                     [&](Entry const& entry) { return entry.type == device.type; });
    if (found == std::end(kBackends)) {
        fail_no_backend(device, argument);
    }
    return found->factory();
}

}  // namespace tensorhash::backend
