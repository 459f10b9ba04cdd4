// Where memory lives. This build has the CPU; the CUDA back end will answer to "cuda:i".
#pragma once

#include <string>
#include <string_view>

#include "tensorhash/export.hpp"

namespace tensorhash {

struct Device {
    enum class Type : unsigned char { Cpu = 1, Cuda = 2 };

    Type type = Type::Cpu;
    int id = 0;

    /// "cpu", "CPU:0", "cuda:1" in any case; throws ValueError on anything else.
    TH_API static Device parse(std::string_view text);
    bool is_cpu() const noexcept { return type == Type::Cpu; }
    bool is_cuda() const noexcept { return type == Type::Cuda; }
    friend bool operator==(Device const&, Device const&) = default;
};

/// "cpu:0".
TH_API std::string to_string(Device device);

/// Throws DeviceError, naming `argument`, unless tables can live on `device` in this build.
TH_API void require_usable(Device device, std::string_view argument);

}  // namespace tensorhash
