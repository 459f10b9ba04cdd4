// CpuTable: the CPU's TableBackend, a thin layer over Table.
#pragma once

#include <memory>

#include "backend/table_backend.hpp"
#include "table/table.hpp"

namespace tensorhash::table {

class CpuTable final : public backend::TableBackend {
public:
    CpuTable(Table table, Device device) : table_(std::move(table)), device_(device) {}

    Table& table() noexcept { return table_; }

    void find(backend::KeyRows keys, Answers out) const override;
    void insert(backend::Insert const& batch) override;
    void activate(backend::Activate const& batch) override;
    void insert_or_assign(backend::InsertOrAssign const& batch) override;
    void accumulate(backend::Accumulate const& batch) override;
    void update(backend::Update const& batch) override;
    void erase(backend::Erase const& batch) override;

    std::unique_ptr<backend::Prepared> prepare(backend::Change const& change) override;
    void finish(std::unique_ptr<backend::Prepared> prepared) noexcept override;
    void cancel(std::unique_ptr<backend::Prepared> prepared) noexcept override;

    void gather(std::size_t column, backend::Gather const& rows, void* out) const override;
    void gather_keys(backend::Gather const& rows, void* out) const override;
    std::size_t list(std::uint64_t begin, std::size_t limit, std::int32_t* out) const override;
    void items(void* keys, std::span<void* const> values) const override;
    Tensor key_tensor() const override;
    Tensor value_tensor(std::size_t column) const override;
    backend::LookupMemory lookup_memory() const override { return table_.lookup_memory(); }
    bool overlaps(void const* data, std::size_t bytes) const noexcept override;

    void reserve(backend::Reserve const& request) override;
    void compact(backend::Compact const& request) override;
    void clear() noexcept override;
    std::unique_ptr<TableBackend> clone() const override;
    std::unique_ptr<TableBackend> make_empty() const override;
    backend::TableImage to_cpu() const override;
    void from_cpu(backend::TableImage const& image) override;

    Device device() const noexcept override { return device_; }
    backend::TableSizes sizes() const noexcept override;
    MemoryUsage memory_usage() const noexcept override;
    void validate() const override;

private:
    Table table_;
    Device device_;
};

/// The Table behind a TableBackend that must be on the CPU. Bounded tables and user-written steps
/// exist only there.
inline Table& on_cpu(backend::TableBackend& table) noexcept {
    return static_cast<CpuTable&>(table).table();
}

}  // namespace tensorhash::table
