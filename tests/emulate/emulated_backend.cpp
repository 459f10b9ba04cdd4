#include "emulate/emulated_backend.hpp"

#include <unistd.h>

#include <cstring>
#include <vector>

namespace tensorhash::emulate {
namespace {

[[noreturn]] void fail_earlier(Device device, std::exception const& error) {
    throw DeviceError("an earlier call on " + to_string(device) + " failed: " + error.what());
}

/// Copies the elements of a strided array in C order, one dimension per level.
unsigned char* gather(unsigned char* to, unsigned char const* from, Shape const& shape,
                      Shape const& strides, std::size_t dimension, std::size_t element_bytes) {
    if (dimension == shape.size()) {
        std::memcpy(to, from, element_bytes);
        return to + element_bytes;
    }
    for (std::int64_t i = 0; i < shape[dimension]; ++i) {
        to =
            gather(to, from + i * strides[dimension], shape, strides, dimension + 1, element_bytes);
    }
    return to;
}

}  // namespace

StreamId EmulatedBackend::id_of(Stream stream) {
    int const device = stream.device.id;
    if (stream.handle == kLegacyStream) {
        return legacy_after_all(device);
    }
    if (stream.handle >= kFirstHandle) {
        return static_cast<StreamId>(stream.handle - kFirstHandle);
    }
    std::scoped_lock const guard(mutex_);
    auto const [place, is_new] = own_streams_.try_emplace({std::this_thread::get_id(), device}, 0);
    if (is_new) {
        place->second = devices_.make_stream(device);
    }
    return place->second;
}

/// As with CUDA, work of the legacy stream comes after the work of all threads' default streams.
StreamId EmulatedBackend::legacy_after_all(int device) {
    auto const legacy = static_cast<StreamId>(device);
    std::scoped_lock const guard(mutex_);
    for (auto const& [place, own] : own_streams_) {
        if (place.second == device) {
            devices_.wait(legacy, devices_.record(own));
        }
    }
    return legacy;
}

Allocation EmulatedBackend::allocate(std::size_t bytes, Device device) {
    void* const data = devices_.allocate(device.id, bytes);
    auto const free = [this, stream = current(device), process = getpid()](void* memory) {
        if (getpid() == process) {  // a forked child owns nothing
            devices_.release(stream, memory);
        }
    };
    return {data, std::shared_ptr<void>(data, free)};
}

void EmulatedBackend::zero(void* data, std::size_t bytes, Device device) {
    devices_.put(current(device), [=] { std::memset(data, 0, bytes); });
}

void EmulatedBackend::copy(void* to, void const* from, std::size_t bytes, Device device) {
    devices_.put(current(device), [=] { std::memcpy(to, from, bytes); });
}

void EmulatedBackend::copy_strided(void* to, void const* from, Shape const& shape,
                                   Shape const& byte_strides, std::size_t element_bytes,
                                   Device device) {
    devices_.put(current(device), [=] {
        gather(static_cast<unsigned char*>(to), static_cast<unsigned char const*>(from), shape,
               byte_strides, 0, element_bytes);
    });
}

void EmulatedBackend::copy_between(void* to, Device to_device, void const* from, Device from_device,
                                   std::size_t bytes) {
    if (from_device.is_cpu()) {
        auto const* const first = static_cast<unsigned char const*>(from);
        std::vector<unsigned char> staged(first, first + bytes);
        devices_.put(current(to_device), [to, staged = std::move(staged)] {
            std::memcpy(to, staged.data(), staged.size());
        });
        return;
    }
    if (to_device.is_cpu()) {
        copy(to, from, bytes, from_device);
        synchronize(current_stream(from_device));
    } else if (has_peers_) {
        devices_.put_copy(current(to_device), from_device.id,
                          [=] { std::memcpy(to, from, bytes); });
    } else {
        std::vector<unsigned char> staged(bytes);
        synchronize(current_stream(to_device));  // it waits for what has written `from`
        copy_between(staged.data(), Device{}, from, from_device, bytes);
        copy_between(to, to_device, staged.data(), Device{}, bytes);
    }
}

Event EmulatedBackend::record(Stream stream) { return devices_.record(id_of(stream)); }

void EmulatedBackend::wait(Stream stream, Event const& event) {
    devices_.wait(id_of(stream), std::static_pointer_cast<LazyEvent>(event));
}

void EmulatedBackend::synchronize(Stream stream) { synchronize(stream.device, id_of(stream)); }

void EmulatedBackend::synchronize(Device device, StreamId stream) {
    try {
        devices_.synchronize(stream);
    } catch (std::runtime_error const& error) {
        fail_earlier(device, error);
    }
}

void EmulatedBackend::check(Device device) {
    try {
        devices_.check(device.id);
    } catch (std::runtime_error const& error) {
        fail_earlier(device, error);
    }
}

}  // namespace tensorhash::emulate
