// CudaBackend: the DeviceBackend of GPUs.
#pragma once

#include <memory>
#include <string>

#include "backend/coords_backend.hpp"
#include "backend/device_backend.hpp"
#include "backend/table_backend.hpp"
#include "cuda/gpu.hpp"

namespace tensorhash::cuda {

class CudaBackend final : public backend::DeviceBackend {
public:
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

    Device::Type type() const noexcept override { return Device::Type::Cuda; }
    int device_count() noexcept override;
    std::string why_no_device() override;
    void check(Device device) override { Gpu::of(device.id).check_queued(); }

    std::unique_ptr<backend::TableBackend> make_table(backend::TableSpec const& spec,
                                                      Device device) override;
    backend::CoordsBackend const& coords(Device device) override;
    std::uint64_t memory_for(backend::TableSpec const& spec) const override;
    Unique unique(backend::KeyRows rows, Element const& element, UniqueParts parts,
                  Device device) override;
    std::unique_ptr<backend::Routed> route(backend::KeyRows keys, Element const& element,
                                           backend::Sharding sharding, Device device) override;

    void cast(backend::Cast const& request, Device device) override;
    Tensor true_rows(backend::Bytes mask, std::uint64_t rows, Device device) override;
    void take(backend::PickedRows const& picked, backend::Bytes from, unsigned char* to,
              Device device) override;
    void put(backend::PickedRows const& picked, backend::Bytes from, unsigned char* to,
             Device device) override;
    void paste(backend::Paste const& request, Device device) override;
    void release_cache(Device device) override { Gpu::of(device.id).release_cache(); }
};

}  // namespace tensorhash::cuda
