// TorchHashTable: arguments, locks, results. A store on the table's device has the rows.
#include "tensorhash/coords/torch_hash_table.hpp"

#include <memory>
#include <utility>

#include "coords/api/arguments.hpp"
#include "map/results.hpp"
#include "map/table_lock.hpp"

namespace tensorhash::coords {
namespace {

// The index takes any number of columns. This limit keeps a row small compared with memory.
constexpr Columns kAnyColumns{1, 1u << 16};

}  // namespace

struct TorchHashTable::Impl : map::TableLock {
    Impl(std::optional<std::uint64_t> slots, Device on)
        : TableLock({on}), device(on), store(coords_backend(on).make_vectors(slots)) {}

    backend::VectorStoreInfo info() const {
        auto const guard = reading();
        return store->info();
    }
    Columns columns() const {
        std::uint32_t const set = store->info().columns;
        return set != 0 ? Columns{set, set} : kAnyColumns;
    }

    Device const device;
    std::unique_ptr<backend::VectorStore> store;
};

TorchHashTable::TorchHashTable(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TorchHashTable::TorchHashTable(TorchHashTable&&) noexcept = default;
TorchHashTable& TorchHashTable::operator=(TorchHashTable&&) noexcept = default;
TorchHashTable::~TorchHashTable() = default;

TorchHashTable::TorchHashTable(Capacity capacity, Device device)
    : impl_(std::make_unique<Impl>(slots_for(capacity), device)) {}

TorchHashTable TorchHashTable::from_keys(Tensor const& vec_keys, std::optional<Capacity> capacity,
                                         std::optional<Device> device) {
    Device const on = device ? *device : device_of(vec_keys, "vec_keys");
    TorchHashTable made(std::make_unique<Impl>(slots_for(capacity), on));
    made.insert(vec_keys);
    return made;
}

TorchHashTable TorchHashTable::restore(Tensor const& vec_keys, Capacity capacity, bool grows) {
    TorchHashTable made = from_keys(vec_keys, capacity, Device{});
    if (grows) {
        made.impl_->store->grow_on_demand();
    }
    return made;
}

void TorchHashTable::insert(Tensor const& vec_keys) {
    auto const guard = impl_->writing();
    backend::CoordRows const fresh =
        check_rows(vec_keys, "vec_keys", impl_->columns(), impl_->device);
    if (fresh.rows > 0) {
        impl_->store->insert(fresh);
        mark_read(fresh);
    } else if (impl_->store->info().columns == 0 && vec_keys.rank() == 2) {
        impl_->store->set_columns(fresh.columns);  // shape (0,) has no columns
    }
}

Tensor TorchHashTable::search(Tensor const& search_keys) const {
    auto const guard = impl_->reading();
    backend::CoordRows const rows =
        check_rows(search_keys, "search_keys", impl_->columns(), impl_->device);
    Tensor found = impl_->store->search(rows);
    mark_read(rows);
    return map::deliver(std::move(found), search_keys.device());
}

Tensor TorchHashTable::vector_keys() const {
    auto const guard = impl_->reading();
    return impl_->store->rows();
}

Tensor TorchHashTable::unique_index() const {
    auto const guard = impl_->reading();
    return map::deliver(impl_->store->unique(), impl_->device);
}

Tensor TorchHashTable::table_kvs() const {
    auto const guard = impl_->reading();
    return map::deliver(impl_->store->slots(), impl_->device);
}

bool TorchHashTable::grows() const { return impl_->info().grows; }

std::int64_t TorchHashTable::capacity() const {
    return static_cast<std::int64_t>(impl_->info().slots);
}

std::int64_t TorchHashTable::num_entries() const {
    return static_cast<std::int64_t>(impl_->info().entries);
}

std::int64_t TorchHashTable::num_distinct() const {
    return static_cast<std::int64_t>(impl_->info().distinct);
}

int TorchHashTable::key_dim() const {
    std::uint32_t const columns = impl_->info().columns;
    return columns == 0 ? -1 : static_cast<int>(columns);
}

Device TorchHashTable::device() const noexcept { return impl_->device; }

}  // namespace tensorhash::coords
