// Device: where memory lives. This build supports the CPU; "cuda:i" needs a CUDA back end.
#pragma once

#include <string>
#include <string_view>

#include "tensorhash/export.hpp"

namespace tensorhash {

/// Where memory lies and calls run: "cpu:0" to "cpu:63", or a GPU.
struct Device {
    enum class Type : unsigned char { Cpu = 1, Cuda = 2 };

    Type type = Type::Cpu;
    int id = 0;

    /// Takes "cpu", "cpu:0" or "cuda:1" in upper or lower case. Throws ValueError otherwise.
    TH_API static Device parse(std::string_view text);
    bool is_cpu() const noexcept { return type == Type::Cpu; }
    bool is_cuda() const noexcept { return type == Type::Cuda; }
    friend bool operator==(Device const&, Device const&) = default;
};

/// For example "cpu:0".
TH_API std::string to_string(Device device);

/// Throws a DeviceError that names `argument` unless this build can hold tables on `device`.
TH_API void require_usable(Device device, std::string_view argument);

}  // namespace tensorhash
