// The DeviceBackend of emulated devices: memory, copies, streams and events.
#pragma once

#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "emulate/lazy_devices.hpp"
#include "emulate/refusing_backend.hpp"

namespace tensorhash::emulate {

/// The handle of a stream that tests made, as DLPack passes it. Smaller ones have a meaning there.
inline constexpr std::uintptr_t kFirstHandle = 16;

/// Has no tables; those of EmulatedTables are in emulated_tables.cpp.
class EmulatedBackend : public RefusingBackend {
public:
    /// Without peers, copies between devices go through the host.
    explicit EmulatedBackend(LazyDevices& devices, bool has_peers = true)
        : devices_(devices), has_peers_(has_peers) {}
    virtual ~EmulatedBackend() = default;

    Allocation allocate(std::size_t bytes, Device device) override;
    void zero(void* data, std::size_t bytes, Device device) override;
    void copy(void* to, void const* from, std::size_t bytes, Device device) override;
    void copy_strided(void* to, void const* from, Shape const& shape, Shape const& byte_strides,
                      std::size_t element_bytes, Device device) override;
    void copy_between(void* to, Device to_device, void const* from, Device from_device,
                      std::size_t bytes) override;

    Event record(Stream stream) override;
    void wait(Stream stream, Event const& event) override;
    void synchronize(Stream stream) override;

    Device::Type type() const noexcept override { return Device::Type::Emulated; }
    int device_count() noexcept override { return devices_.count(); }
    std::string why_no_device() override { return {}; }
    void check(Device device) override;

    /// The stream that calls of this thread use.
    StreamId current(Device device) { return id_of(current_stream(device)); }
    LazyDevices& devices() noexcept { return devices_; }
    /// Waits for a stream of the device. Throws DeviceError if work of the device failed.
    void synchronize(Device device, StreamId stream);

private:
    StreamId id_of(Stream stream);
    StreamId legacy_after_all(int device);

    LazyDevices& devices_;
    bool has_peers_;
    std::mutex mutex_;
    std::map<std::pair<std::thread::id, int>, StreamId> own_streams_;  // by thread and device
};

}  // namespace tensorhash::emulate
