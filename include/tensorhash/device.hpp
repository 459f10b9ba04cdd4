// Device: where memory lives. The CPU is always there; other devices come from plugins.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "tensorhash/export.hpp"

namespace tensorhash {

/// Where memory lies and calls run: "cpu:0" to "cpu:63", or a GPU.
struct Device {
    /// The numbers are DLPack's. Emulated devices exist in tests only.
    enum class Type : unsigned char { Cpu = 1, Cuda = 2, Emulated = 12 };

    Type type = Type::Cpu;
    int id = 0;

    /// Takes "cpu", "cpu:0" or "cuda:1" in upper or lower case, and "emu:0" if a plugin has such a
    /// device. Throws ValueError otherwise.
    TH_API static Device parse(std::string_view text);
    bool is_cpu() const noexcept { return type == Type::Cpu; }
    bool is_cuda() const noexcept { return type == Type::Cuda; }
    friend bool operator==(Device const&, Device const&) = default;
};

/// One more than the largest Device::Type: the length of tables that it indexes.
inline constexpr std::size_t kDeviceTypes = 13;

/// For example "cpu:0".
TH_API std::string to_string(Device device);

/// Throws a DeviceError that names `argument` unless this process can hold tables on `device`.
TH_API void require_usable(Device device, std::string_view argument);

/// The number of devices of a type that this process can use: 1 for the CPU.
TH_API int device_count(Device::Type type);
/// How many devices of a type there are or, if there are none, why.
TH_API std::string device_status(Device::Type type);

/// Looks for plugins, files named libtensorhash_*.so, in this folder too. The paths in the
/// environment variable TENSORHASH_PLUGINS, separated by colons, come first. Plugins are loaded
/// when a device besides the CPU is first asked for.
TH_API void add_plugin_folder(std::string const& folder);

}  // namespace tensorhash
