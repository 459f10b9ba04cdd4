// Memory, copies, streams and events of the back end, and what the driver says of its devices.
// The steps take their device form here, so the device layer comes first.
#include "cuda/queue.hpp"
#include "device/selecting.hpp"

#include <algorithm>
#include <vector>

#include "cuda/backend.hpp"
#include "runtime/thread_number.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::cuda {
namespace {

/// The devices, or why there are none. Asked once: the driver's answer does not change.
struct DeviceCount {
    int count = 0;
    cudaError_t status = cudaSuccess;

    static DeviceCount const& once() {
        static DeviceCount const found = [] {
            DeviceCount now;
            now.status = cudaGetDeviceCount(&now.count);
            if (now.status != cudaSuccess) {
                cudaGetLastError();  // why_no_device() reports it
                now.count = 0;
            }
            return now;
        }();
        return found;
    }
};

CudaQueue queue_of(Device device) { return CudaQueue(Gpu::of(device.id)); }

/// Frees memory in the order of the stream that it was allocated for.
void free_later(Gpu& gpu, void* data, Stream stream, std::uint64_t thread) noexcept {
    if (!gpu.is_usable()) {
        return;
    }
    // Each thread has its own default stream. Only the legacy stream comes after those of others.
    bool const is_foreign = stream.handle == kPerThreadStream && thread != runtime::thread_number();
    DeviceGuard const guard(gpu.id());
    gpu.note(cudaFreeAsync(data, is_foreign ? cudaStreamLegacy : handle_of(stream)),
             "cudaFreeAsync");
}

}  // namespace

int CudaBackend::device_count() noexcept { return DeviceCount::once().count; }

std::string CudaBackend::why_no_device() {
    DeviceCount const& found = DeviceCount::once();
    int version = 0;
    if (found.count > 0) {
        return {};
    }
    std::string const number = " (error " + std::to_string(static_cast<int>(found.status)) + ")";
    if (found.status != cudaErrorInsufficientDriver) {
        return "the CUDA driver says: " + describe(found.status);
    }
    if (cudaDriverGetVersion(&version) != cudaSuccess || version == 0) {
        return "there is no CUDA driver" + number;
    }
    return "its CUDA driver is too old: expected one for CUDA 13, got one for CUDA " +
           std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10) + number;
}

Allocation CudaBackend::allocate(std::size_t bytes, Device device) {
    Gpu& gpu = Gpu::of(device.id);
    void* const data = CudaQueue(gpu).allocate(bytes);
    Stream const stream = current_stream(device);
    auto const free = [&gpu, stream, thread = runtime::thread_number()](void* memory) {
        free_later(gpu, memory, stream, thread);
    };
    return {data, std::shared_ptr<void>(data, free)};
}

void CudaBackend::zero(void* data, std::size_t bytes, Device device) {
    queue_of(device).fill(data, 0, bytes);
}

void CudaBackend::copy(void* to, void const* from, std::size_t bytes, Device device) {
    queue_of(device).copy(to, from, bytes, device::Copy::Within);
}

void CudaBackend::copy_strided(void* to, void const* from, Shape const& shape,
                               Shape const& byte_strides, std::size_t element_bytes,
                               Device device) {
    device::CopyStrided const body =
        device::strided_copy(to, from, shape, byte_strides, element_bytes);
    queue_of(device).launch(body.elements, body);
}

void CudaBackend::copy_between(void* to, Device to_device, void const* from, Device from_device,
                               std::size_t bytes) {
    if (from_device.is_cpu()) {
        queue_of(to_device).copy(to, from, bytes, device::Copy::In);
    } else if (to_device.is_cpu()) {
        queue_of(from_device).read_back(to, from, bytes);
    } else if (Gpu::of(from_device.id).allow_peer(to_device.id)) {
        queue_of(to_device).copy(to, from, bytes, device::Copy::Peer);
    } else {
        std::vector<unsigned char> staged(bytes);
        Gpu& target = Gpu::of(to_device.id);
        target.synchronize(target.stream());  // it waits for what has written `from`
        queue_of(from_device).read_back(staged.data(), from, bytes);
        queue_of(to_device).copy(to, staged.data(), bytes, device::Copy::In);
    }
}

Event CudaBackend::record(Stream stream) {
    return Gpu::of(stream.device.id).record(handle_of(stream));
}

void CudaBackend::wait(Stream stream, Event const& event) {
    Gpu::of(stream.device.id).wait(handle_of(stream), std::static_pointer_cast<CUevent_st>(event));
}

void CudaBackend::synchronize(Stream stream) {
    Gpu::of(stream.device.id).synchronize(handle_of(stream));
}

}  // namespace tensorhash::cuda
