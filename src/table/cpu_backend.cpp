// The CPU's DeviceBackend. Calls are complete when they return, so streams and events do nothing.
#include "backend/device_backend.hpp"
#include "backend/loader.hpp"
#include "runtime/memory.hpp"
#include "table/cpu_table.hpp"
#include "table/route.hpp"
#include "table/unique.hpp"

namespace tensorhash::table {
namespace {

using backend::Event;
using backend::KeyRows;
using backend::Routed;
using backend::Stream;
using backend::TableSpec;

class CpuBackend final : public backend::DeviceBackend {
public:
    Allocator& memory() noexcept override { return *find_allocator(Device::Type::Cpu); }
    void copy(void* to, Device, void const* from, Device, std::size_t bytes) override {
        runtime::copy_bytes(to, from, bytes);
    }

    Event record(Stream) override { return {}; }
    void wait(Stream, Event const&) override {}
    void synchronize(Stream) override {}

    std::unique_ptr<backend::TableBackend> make_table(TableSpec const& spec, Device) override {
        return std::make_unique<CpuTable>(Table(spec.key, spec.values, spec.capacity, spec.seed));
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

}  // namespace
}  // namespace tensorhash::table

namespace tensorhash::backend {

DeviceBackend& cpu_backend() noexcept { return table::the_backend; }

}  // namespace tensorhash::backend
