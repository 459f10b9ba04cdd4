// The CPU's DeviceBackend. Calls are complete when they return, so streams and events do nothing.
#include "backend/device_backend.hpp"
#include "backend/loader.hpp"
#include "runtime/memory.hpp"
#include "table/cpu_coords.hpp"
#include "table/cpu_table.hpp"
#include "table/elements.hpp"
#include "table/route.hpp"
#include "table/unique.hpp"
#include "tensor/copy.hpp"

namespace tensorhash::table {
namespace {

using backend::KeyRows;
using backend::Routed;
using backend::TableSpec;

class CpuBackend final : public backend::DeviceBackend {
public:
    Allocation allocate(std::size_t bytes, Device) override {
        auto block = runtime::make_shared_block(bytes, runtime::Fill::None);
        void* const data = block->data();
        return {data, std::move(block)};
    }
    void zero(void* data, std::size_t bytes, Device) override { runtime::zero_bytes(data, bytes); }
    void copy(void* to, void const* from, std::size_t bytes, Device) override {
        runtime::copy_bytes(to, from, bytes);
    }
    void copy_strided(void* to, void const* from, Shape const& shape, Shape const& byte_strides,
                      std::size_t element_bytes, Device) override {
        gather_strided(to, from, shape, byte_strides, element_bytes);
    }
    void copy_between(void* to, Device, void const* from, Device, std::size_t bytes) override {
        runtime::copy_bytes(to, from, bytes);
    }

    Event record(Stream) override { return {}; }
    void wait(Stream, Event const&) override {}
    void synchronize(Stream) override {}

    Device::Type type() const noexcept override { return Device::Type::Cpu; }
    int device_count() noexcept override { return 1; }
    std::string why_no_device() override { return {}; }
    void check(Device) override {}

    std::unique_ptr<backend::TableBackend> make_table(TableSpec const& spec,
                                                      Device device) override {
        return std::make_unique<CpuTable>(Table(spec.key, spec.values, spec.capacity, spec.seed),
                                          device);
    }
    backend::CoordsBackend const& coords(Device) override { return backend::cpu_coords(); }
    std::uint64_t memory_for(TableSpec const& spec) const override {
        return Table::memory_for(spec.key, spec.values, spec.capacity);
    }
    Unique unique(KeyRows rows, Element const& element, UniqueParts parts, Device) override {
        return unique_rows(rows, element, parts);
    }
    std::unique_ptr<Routed> route(KeyRows keys, Element const& element, backend::Sharding sharding,
                                  Device) override {
        if (sharding.shards == 1) {
            return std::make_unique<CpuRouted>(keys.rows);
        }
        if (sharding.rule == backend::ShardRule::Hash) {
            return std::make_unique<CpuRouted>(keys, element, sharding.shards);
        }
        return std::make_unique<CpuRouted>(std::move(sharding.shard_of_row), sharding.shards);
    }

    void cast(backend::Cast const& request, Device) override { cast_elements(request); }
    Tensor true_rows(backend::Bytes mask, std::uint64_t rows, Device) override {
        return table::true_rows(mask, rows);
    }
    void take(backend::PickedRows const& picked, backend::Bytes from, unsigned char* to,
              Device) override {
        take_rows(picked, from, to);
    }
    void put(backend::PickedRows const& picked, backend::Bytes from, unsigned char* to,
             Device) override {
        put_rows(picked, from, to);
    }
    void paste(backend::Paste const& request, Device) override { table::paste(request); }
    void release_cache(Device) override {}
};

constinit CpuBackend the_backend;

// Runs before constructors of global variables without a priority, also in a static build.
[[gnu::constructor(101)]] void register_cpu() noexcept {
    backend::register_backend(Device::Type::Cpu, &the_backend);
}

}  // namespace
}  // namespace tensorhash::table
