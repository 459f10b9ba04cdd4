// Device names, and which devices this process can use.
#include "tensorhash/device.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <charconv>
#include <iterator>

#include "tensor/allocators.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash {
namespace {

struct Name {
    std::string_view text;
    Device::Type type;
};
constexpr Name kNames[] = {
    {"cpu", Device::Type::Cpu}, {"cuda", Device::Type::Cuda}, {"emu", Device::Type::Emulated}};

/// Is this a type that users know, or one that a plugin has?
bool is_known(Device::Type type) {
    if (type != Device::Type::Emulated) {
        return true;
    }
    load_plugins();
    return find_allocator(type) != nullptr;
}

/// The first process that uses a device is the only one: in its forked children, drivers fail in
/// ways that are hard to read.
void require_same_process(Device device, std::string_view argument) {
    static constinit std::atomic<pid_t> user = 0;
    pid_t first = 0;
    pid_t const mine = getpid();
    if (!user.compare_exchange_strong(first, mine, std::memory_order_relaxed,
                                      std::memory_order_relaxed) &&
        first != mine) {
        throw DeviceError(std::string(argument) + ": \"" + to_string(device) +
                          "\" belongs to the process that this one was forked from; start "
                          "processes with \"spawn\" instead of \"fork\", or use \"cpu\"");
    }
}

}  // namespace

Device Device::parse(std::string_view text) {
    std::string lower(text);
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    std::size_t const colon = lower.find(':');
    std::string_view const kind = std::string_view(lower).substr(0, colon);
    auto const* const name = std::find_if(std::begin(kNames), std::end(kNames),
                                          [&](Name const& one) { return one.text == kind; });
    int id = 0;
    bool good = name != std::end(kNames) && is_known(name->type);
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
    return {name->type, id};
}

std::string to_string(Device device) {
    auto const* const name = std::find_if(std::begin(kNames), std::end(kNames),
                                          [&](Name const& one) { return one.type == device.type; });
    return std::string(name->text) + ":" + std::to_string(device.id);
}

int device_count(Device::Type type) {
    if (type != Device::Type::Cpu) {
        load_plugins();
    }
    Allocator* const memory = find_allocator(type);
    return memory != nullptr ? memory->device_count() : 0;
}

Allocator& memory_of(Device device, std::string_view argument) {
    if (device == Device{}) {
        return *find_allocator(Device::Type::Cpu);
    }
    if (device.id < 0 || device.id >= device_count(device.type)) {
        fail_no_device(device, argument);
    }
    Allocator& memory = *find_allocator(device.type);
    require_same_process(device, argument);
    memory.check(device);
    return memory;
}

void require_usable(Device device, std::string_view argument) { memory_of(device, argument); }

void require_cpu(Device device, std::string_view argument, std::string_view what) {
    require_usable(device, argument);
    if (!device.is_cpu()) {
        throw DeviceError(std::string(argument) + ": " + std::string(what) +
                          " are on the CPU only, got \"" + to_string(device) + "\"; use \"cpu\"");
    }
}

void require_host(Device device, std::string_view argument) {
    if (!device.is_cpu()) {
        throw DeviceError(std::string(argument) + ": expected memory of the CPU, got memory of \"" +
                          to_string(device) +
                          "\"; copy it to the CPU first, in Python with .cpu()");
    }
}

}  // namespace tensorhash
