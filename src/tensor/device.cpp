// Device names, and which of them this build can use.
#include "tensorhash/device.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "tensor/allocators.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash {

Device Device::parse(std::string_view text) {
    std::string lower(text);
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    std::size_t const colon = lower.find(':');
    std::string const kind = lower.substr(0, colon);
    int id = 0;
    bool good = kind == "cpu" || kind == "cuda";
    if (colon != std::string::npos) {
        char const* const first = lower.data() + colon + 1;
        char const* const last = lower.data() + lower.size();
        auto const [end, error] = std::from_chars(first, last, id);
        good = good && error == std::errc() && end == last && id >= 0 && first != last;
    }
    if (!good) {
        throw ValueError("device: expected \"cpu\", \"cpu:0\" or \"cuda:i\", got \"" +
                         std::string(text) + "\"");
    }
    return {kind == "cpu" ? Type::Cpu : Type::Cuda, id};
}

std::string to_string(Device device) {
    return (device.is_cpu() ? "cpu:" : "cuda:") + std::to_string(device.id);
}

void fail_no_backend(Device device, std::string_view argument) {
    throw DeviceError(std::string(argument) +
                      ": this build of tensorhash has no CUDA back end, got \"" +
                      to_string(device) + "\"; use \"cpu\"");
}

void require_usable(Device device, std::string_view argument) {
    if (find_allocator(device.type) == nullptr) {
        fail_no_backend(device, argument);
    }
    if (device.is_cpu() && device.id != 0) {
        throw DeviceError(std::string(argument) + ": the only CPU device is \"cpu:0\", got \"" +
                          to_string(device) + "\"");
    }
}

}  // namespace tensorhash
