// CpuTable's verbs: each makes one call to Table.
#include "table/cpu_table.hpp"

#include <utility>
#include <variant>

#include "table/update.hpp"

namespace tensorhash::table {
namespace {

/// A change and the result of its first step.
struct CpuPrepared final : backend::Prepared {
    using State =
        std::variant<std::monostate, Insertion, Updating, Erasing, Growth, Compacted, Shrinkage>;

    explicit CpuPrepared(backend::Change const& what) : change(what) {}

    backend::Change change;
    State state;
};

/// The first step of each kind of change.
struct Prepare {
    using State = CpuPrepared::State;
    Table& table;

    State insert(backend::KeyRows const& keys, Answers out) const {
        return table.prepare_insert(keys.data, keys.rows, out, keys.source);
    }
    State operator()(backend::Insert const& batch) const { return insert(batch.keys, batch.out); }
    State operator()(backend::Activate const& batch) const { return insert(batch.keys, batch.out); }
    State operator()(backend::InsertOrAssign const& batch) const {
        return insert(batch.keys, batch.out);
    }
    State operator()(backend::Assign const&) const { return {}; }  // needs no memory
    State operator()(backend::Accumulate const& batch) const {
        return insert(batch.keys, batch.out);
    }
    State operator()(backend::Update const& batch) const { return prepare_update(table, batch); }
    State operator()(backend::Erase const& batch) const {
        return table.prepare_erase(batch.keys.rows);
    }
    State operator()(backend::Reserve const& request) const {
        return table.prepare_reserve(request.capacity);
    }
    State operator()(backend::Compact const& request) const {
        return table.prepare_compact(request.old_to_new);
    }
    State operator()(backend::Shrink const&) const { return table.prepare_shrink(); }
};

/// The second step of each kind of change.
struct Finish {
    Table& table;
    CpuPrepared::State& state;

    Insertion&& insertion() const { return std::get<Insertion>(std::move(state)); }

    void operator()(backend::Insert const& batch) const {
        table.finish_insert(insertion(), batch.values);
    }
    void operator()(backend::Activate const&) const { table.finish_activate(insertion()); }
    void operator()(backend::InsertOrAssign const& batch) const {
        table.finish_insert_or_assign(insertion(), batch.values);
    }
    void operator()(backend::Assign const& batch) const {
        table.assign(batch.keys.data, batch.keys.rows, batch.values, batch.out);
    }
    void operator()(backend::Accumulate const& batch) const {
        table.finish_accumulate(insertion(), batch.values, batch.reduce);
    }
    void operator()(backend::Update const& batch) const {
        finish_update(table, batch, std::get<Updating>(std::move(state)));
    }
    void operator()(backend::Erase const& batch) const {
        table.finish_erase(std::get<Erasing>(state), batch.keys.data, batch.keys.rows, batch.mask);
    }
    void operator()(backend::Reserve const&) const {
        table.finish_reserve(std::get<Growth>(std::move(state)));
    }
    void operator()(backend::Compact const&) const {
        table.finish_compact(std::get<Compacted>(std::move(state)));
    }
    void operator()(backend::Shrink const&) const {
        table.finish_shrink(std::get<Shrinkage>(std::move(state)));
    }
};

}  // namespace

void CpuTable::find(backend::KeyRows keys, Answers out) const {
    table_.find(keys.data, keys.rows, out);
}

void CpuTable::insert(backend::Insert const& batch) {
    table_.insert(batch.keys.data, batch.keys.rows, batch.values, batch.out, batch.keys.source);
}

void CpuTable::activate(backend::Activate const& batch) {
    table_.activate(batch.keys.data, batch.keys.rows, batch.out, batch.keys.source);
}

void CpuTable::insert_or_assign(backend::InsertOrAssign const& batch) {
    table_.insert_or_assign(batch.keys.data, batch.keys.rows, batch.values, batch.out,
                            batch.keys.source);
}

void CpuTable::accumulate(backend::Accumulate const& batch) {
    table_.accumulate(batch.keys.data, batch.keys.rows, batch.values, batch.reduce, batch.out,
                      batch.keys.source);
}

void CpuTable::update(backend::Update const& batch) {
    finish_update(table_, batch, prepare_update(table_, batch));
}

void CpuTable::erase(backend::Erase const& batch) {
    table_.erase(batch.keys.data, batch.keys.rows, batch.mask);
}

std::unique_ptr<backend::Prepared> CpuTable::prepare(backend::Change const& change) {
    auto prepared = std::make_unique<CpuPrepared>(change);  // nothing may fail after the claims
    prepared->state = std::visit(Prepare{table_}, change);
    return prepared;
}

// std::visit throws only for a variant without a value; a change always has one.
// NOLINTNEXTLINE(bugprone-exception-escape)
void CpuTable::finish(std::unique_ptr<backend::Prepared> prepared) noexcept {
    auto& mine = static_cast<CpuPrepared&>(*prepared);
    std::visit(Finish{table_, mine.state}, mine.change);
}

void CpuTable::cancel(std::unique_ptr<backend::Prepared> prepared) noexcept {
    auto& mine = static_cast<CpuPrepared&>(*prepared);
    if (auto* const insertion = std::get_if<Insertion>(&mine.state)) {
        table_.cancel(*insertion);
    } else if (auto* const updating = std::get_if<Updating>(&mine.state)) {
        table::cancel(table_, *updating);
    }  // the others have changed nothing and free their memory here
}

void CpuTable::gather(std::size_t column, backend::Gather const& rows, void* out) const {
    table_.gather(column, rows, out);
}
void CpuTable::gather_keys(backend::Gather const& rows, void* out) const {
    table_.gather_keys(rows, out);
}
std::size_t CpuTable::list(std::uint64_t begin, std::size_t limit, std::int32_t* out) const {
    return table_.list(begin, limit, out);
}
void CpuTable::items(void* keys, std::span<void* const> values) const {
    table_.items(keys, values);
}
Tensor CpuTable::key_tensor() const { return table_.key_tensor(); }
Tensor CpuTable::value_tensor(std::size_t column) const { return table_.value_tensor(column); }
bool CpuTable::overlaps(void const* data, std::size_t bytes) const noexcept {
    return table_.overlaps(data, bytes);
}

void CpuTable::reserve(backend::Reserve const& request) { table_.reserve(request.capacity); }
void CpuTable::compact(backend::Compact const& request) { table_.compact(request.old_to_new); }
void CpuTable::clear() noexcept { table_.clear(); }

std::unique_ptr<backend::TableBackend> CpuTable::clone() const {
    return std::make_unique<CpuTable>(Table(table_), device_);
}

std::unique_ptr<backend::TableBackend> CpuTable::make_empty() const {
    return std::make_unique<CpuTable>(
        Table(table_.key_element(), table_.value_elements(), table_.capacity(), table_.seed()),
        device_);
}

backend::TableImage CpuTable::to_cpu() const { return table_.to_cpu(); }
void CpuTable::from_cpu(backend::TableImage const& image) { table_.from_cpu(image); }

backend::TableSizes CpuTable::sizes() const noexcept { return table_.sizes(); }
MemoryUsage CpuTable::memory_usage() const noexcept { return table_.memory_usage(); }
void CpuTable::validate() const { table_.validate(); }

}  // namespace tensorhash::table
