// Streams: queues of work on a device besides the CPU, and the stream that a thread's calls use.
#pragma once

#include <cstdint>
#include <memory>

#include "tensorhash/device.hpp"
#include "tensorhash/export.hpp"

namespace tensorhash {

/// The device's legacy default stream, which other frameworks use unless told otherwise.
inline constexpr std::uintptr_t kLegacyStream = 1;
/// A default stream of the calling thread.
inline constexpr std::uintptr_t kPerThreadStream = 2;

/// A queue of work on a device. The handle is what DLPack passes between frameworks: one of the two
/// numbers above, or CUDA's handle of a stream. On the CPU a call is done when it returns, and the
/// handle means nothing.
struct Stream {
    Device device;
    std::uintptr_t handle = kPerThreadStream;

    friend bool operator==(Stream const&, Stream const&) = default;
};

/// A point in a stream's work. Null: there is nothing to wait for.
using Event = std::shared_ptr<void>;

/// The stream that calls of this thread use on `device`.
TH_API Stream current_stream(Device device) noexcept;

/// Returns when the work on the current stream of `device` is done. Throws DeviceError if some of
/// it failed, or if this process cannot use the device.
TH_API void synchronize(Device device);

/// Until the end of the scope, calls of this thread use `stream` on its device. Scopes nest.
class TH_API StreamScope {
public:
    explicit StreamScope(Stream stream);
    ~StreamScope();
    StreamScope(StreamScope const&) = delete;
    StreamScope& operator=(StreamScope const&) = delete;
};

}  // namespace tensorhash
