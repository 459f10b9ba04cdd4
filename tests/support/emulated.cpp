#include "support/emulated.hpp"

#include <dlfcn.h>

#include <filesystem>
#include <stdexcept>
#include <string>

namespace th_test {
namespace {

EmulatedDevices load() {
    auto const folder = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "plugins";
    tensorhash::add_plugin_folder(folder.string());
    tensorhash::require_usable({tensorhash::Device::Type::Emulated, 0}, "device");
    void* const plugin =
        dlopen((folder / "libtensorhash_emulated.so").c_str(), RTLD_NOW | RTLD_NOLOAD);
    EmulatedDevices devices{};
    auto const find = [&](auto& function, char const* name) {
        function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(plugin, name));
        if (function == nullptr) {
            throw std::runtime_error(std::string("the plugin has no function ") + name);
        }
    };
    find(devices.live, "emulated_live");
    find(devices.pending, "emulated_pending");
    find(devices.waits, "emulated_waits");
    find(devices.set_seed, "emulated_set_seed");
    find(devices.make_stream, "emulated_make_stream");
    find(devices.fail, "emulated_fail");
    return devices;
}

}  // namespace

EmulatedDevices const& emulated_devices() {
    static EmulatedDevices const devices = load();
    return devices;
}

}  // namespace th_test
