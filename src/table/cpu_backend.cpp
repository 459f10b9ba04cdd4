// The CPU's DeviceBackend. Calls are complete when they return, so streams and events do nothing.
#include "backend/device_backend.hpp"
#include "backend/loader.hpp"
#include "runtime/memory.hpp"
#include "table/cpu_coords.hpp"
#include "table/cpu_table.hpp"
#include "table/route.hpp"
#include "table/unique.hpp"
#include "tensor/cpu_allocator.hpp"

namespace tensorhash::table {
namespace {

using backend::Event;
using backend::KeyRows;
using backend::Routed;
using backend::Stream;
using backend::TableSpec;

class CpuBackend final : public backend::DeviceBackend {
public:
    Allocator& memory() noexcept override { return cpu_allocator(); }
    void copy(void* to, Device, void const* from, Device, std::size_t bytes) override {
        runtime::copy_bytes(to, from, bytes);
    }

    Event record(Stream) override { return {}; }
    void wait(Stream, Event const&) override {}
    void synchronize(Stream) override {}

    std::unique_ptr<backend::TableBackend> make_table(TableSpec const& spec,
                                                      Device device) override {
        return std::make_unique<CpuTable>(Table(spec.key, spec.values, spec.capacity, spec.seed),
                                          device);
    }
    backend::CoordsBackend const& coords() override { return backend::cpu_coords(); }
    std::uint64_t memory_for(TableSpec const& spec) const override {
        return Table::memory_for(spec.key, spec.values, spec.capacity);
    }
    Unique unique(KeyRows rows, Element const& element, UniqueParts parts) override {
        return unique_rows(rows, element, parts);
    }
    std::unique_ptr<Routed> route(KeyRows keys, Element const& element, std::size_t shards,
                                  Tensor shard_of_row) override {
        if (shards == 1) {
            return std::make_unique<CpuRouted>(keys.rows);
        }
        if (shard_of_row.dtype() != Dtype::Undefined) {
            return std::make_unique<CpuRouted>(std::move(shard_of_row), shards);
        }
        return std::make_unique<CpuRouted>(keys, element, shards);
    }
};

constinit CpuBackend the_backend;

// Runs before constructors of global variables without a priority, also in a static build.
[[gnu::constructor(101)]] void register_cpu() noexcept {
    backend::register_backend(Device::Type::Cpu, &the_backend);
}

}  // namespace
}  // namespace tensorhash::table
