// Tables and coordinates on a GPU: those of src/device over a CudaQueue. The steps take their
// device form here, so the device layer comes first.
#include "device/coords.hpp"
#include "device/routed.hpp"
#include "device/selecting.hpp"
#include "device/table.hpp"
#include "device/unique.hpp"

#include "cuda/backend.hpp"
#include "cuda/queue.hpp"

#include <map>
#include <mutex>

namespace tensorhash::cuda {
namespace {

struct OfDevice {
    OfDevice(Gpu& gpu, Device device) : queue(gpu), coords(queue, device) {}

    CudaQueue queue;
    device::Coords<CudaQueue> coords;
};

/// Never freed: views of a table may outlive every other global variable.
OfDevice& of(Device device) {
    static std::mutex& mutex = *new std::mutex;
    static auto& all = *new std::map<int, OfDevice>;
    Gpu& gpu = Gpu::of(device.id);
    std::scoped_lock const guard(mutex);
    return all.try_emplace(device.id, gpu, device).first->second;
}

CudaQueue& queue_of(Device device) { return of(device).queue; }

}  // namespace

std::unique_ptr<backend::TableBackend> CudaBackend::make_table(backend::TableSpec const& spec,
                                                               Device device) {
    return std::make_unique<device::DeviceTable<CudaQueue>>(queue_of(device), spec, device);
}

std::uint64_t CudaBackend::memory_for(backend::TableSpec const& spec) const {
    return device::memory_for(spec);
}

Unique CudaBackend::unique(backend::KeyRows rows, Element const& element, UniqueParts parts,
                           Device device) {
    return device::unique_rows(queue_of(device), rows, element, parts, device);
}

backend::CoordsBackend const& CudaBackend::coords(Device device) { return of(device).coords; }

std::unique_ptr<backend::Routed> CudaBackend::route(backend::KeyRows keys, Element const& element,
                                                    backend::Sharding sharding, Device device) {
    return std::make_unique<device::Routed<CudaQueue>>(queue_of(device), keys, element, sharding);
}

void CudaBackend::cast(backend::Cast const& request, Device device) {
    device::cast_elements(queue_of(device), request);
}

Tensor CudaBackend::true_rows(backend::Bytes mask, std::uint64_t rows, Device device) {
    return device::true_rows(queue_of(device), mask, rows, device);
}

void CudaBackend::take(backend::PickedRows const& picked, backend::Bytes from, unsigned char* to,
                       Device device) {
    device::take_rows(queue_of(device), picked, from, to);
}

void CudaBackend::put(backend::PickedRows const& picked, backend::Bytes from, unsigned char* to,
                      Device device) {
    device::put_rows(queue_of(device), picked, from, to);
}

void CudaBackend::paste(backend::Paste const& request, Device device) {
    device::paste(queue_of(device), request);
}

}  // namespace tensorhash::cuda
