// The public coordinate tables: arguments, locks, results. A store on the table's device does the
// work.
#include "tensorhash/coords/packed_hash_table.hpp"

#include <string>
#include <utility>

#include "coords/api/arguments.hpp"
#include "coords/api/table_impl.hpp"
#include "map/results.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::coords {
namespace {

using backend::CoordRows;
using backend::kMaxCoordColumns;
using backend::RowRange;

std::uint32_t check_key_dim(std::optional<int> key_dim) {
    if (key_dim && (*key_dim < 1 || *key_dim > static_cast<int>(kMaxCoordColumns))) {
        throw ValueError("key_dim: expected 1 to " + std::to_string(kMaxCoordColumns) + ", got " +
                         std::to_string(*key_dim));
    }
    return static_cast<std::uint32_t>(key_dim.value_or(0));
}

/// Requires the store's number of columns, or any number if the store has none yet.
CoordRows check_rows_for(backend::CoordStore const& store, Tensor const& tensor,
                         std::string_view argument, Device device) {
    std::uint32_t const columns = store.info().columns;
    return check_rows(tensor, argument,
                      columns == 0 ? Columns{1, kMaxCoordColumns} : Columns{columns, columns},
                      device);
}

/// Requires the number of columns of `rows`. An empty list of rows has none to compare with.
CoordRows check_offsets_for(backend::CoordStore const& store, CoordRows const& rows,
                            Tensor const& offsets, Device device) {
    return rows.rows == 0 ? check_rows_for(store, offsets, "offsets", device)
                          : check_rows(offsets, "offsets", rows.columns, device);
}

[[noreturn]] void fail_wide_keys(std::string const& member) {
    throw ValueError(member +
                     ": expected a table of 64-bit keys, which the slots hold, got wider "
                     "keys; vector_keys and unique_index list the keys of any table");
}

}  // namespace

CoordTableBase::CoordTableBase(CoordTableBase&&) noexcept = default;
CoordTableBase& CoordTableBase::operator=(CoordTableBase&&) noexcept = default;
CoordTableBase::~CoordTableBase() = default;

CoordTableBase::CoordTableBase(Device device, backend::CoordStoreRules const& rules,
                               std::uint32_t columns) {
    require_usable(device, "device");
    impl_ = std::make_unique<Impl>(coords_backend(device).make_store(rules, columns), device,
                                   rules.double_hash);
}

void CoordTableBase::insert(Tensor const& coords) {
    auto const guard = impl_->writing();
    backend::CoordStore& store = *impl_->store;
    CoordRows const rows = check_rows_for(store, coords, "coords", impl_->device);
    if (rows.rows > 0) {
        store.insert(rows, "coords");
        mark_read(rows);
    } else if (store.info().columns == 0 && coords.shape().size() == 2) {
        store.set_columns(rows.columns);  // an empty list, shape (0,), has no columns
    }
}

Tensor CoordTableBase::search(Tensor const& query, SearchMode mode) const {
    if (mode < SearchMode::Linear || mode > SearchMode::WarpCoop) {
        throw ValueError("mode: expected LINEAR, DOUBLE_HASH or WARP_COOP (0, 1, 2), got " +
                         std::to_string(static_cast<int>(mode)));
    }
    auto const guard = impl_->reading();
    CoordRows const rows = check_rows_for(*impl_->store, query, "query", impl_->device);
    Tensor found = impl_->store->search(rows, mode);
    mark_read(rows);
    return map::deliver(std::move(found), query.device());
}

Tensor CoordTableBase::batched_search(Tensor const& queries, Tensor const& offsets) const {
    auto const guard = impl_->reading();
    CoordRows const rows = check_rows_for(*impl_->store, queries, "queries", impl_->device);
    CoordRows const by = check_offsets_for(*impl_->store, rows, offsets, impl_->device);
    Tensor found = impl_->store->search(rows, by);
    mark_read(rows);
    mark_read(by);
    return map::deliver(std::move(found), queries.device());
}

void CoordTableBase::expand_with_offsets(Tensor const& base, Tensor const& offsets) {
    auto const guard = impl_->writing();
    CoordRows const from = check_rows_for(*impl_->store, base, "base", impl_->device);
    CoordRows const by = check_offsets_for(*impl_->store, from, offsets, impl_->device);
    if (from.rows > 0 && by.rows > 0) {
        impl_->store->expand(from, by);
        mark_read(from);
        mark_read(by);
    }
}

void CoordTableBase::clear() {
    auto const guard = impl_->writing();
    impl_->store->clear();
}

void CoordTableBase::grow_on_demand() {
    auto const guard = impl_->writing();
    impl_->store->grow_on_demand();
}

Tensor CoordTableBase::vector_keys() const {
    auto const guard = impl_->reading();
    return impl_->store->rows();
}

Tensor CoordTableBase::unique_index() const {
    auto const guard = impl_->reading();
    return map::deliver(impl_->store->unique(), impl_->device);
}

Tensor CoordTableBase::keys_tensor() const {
    auto const guard = impl_->reading();
    auto slots = impl_->store->slots();
    if (!slots) fail_wide_keys("keys_tensor");
    return std::move(slots->keys);
}

Tensor CoordTableBase::values_tensor() const {
    auto const guard = impl_->reading();
    auto slots = impl_->store->slots();
    if (!slots) fail_wide_keys("values_tensor");
    return std::move(slots->rows);
}

bool CoordTableBase::grows() const { return impl_->info().grows; }
std::int64_t CoordTableBase::capacity() const {
    return static_cast<std::int64_t>(impl_->info().slots);
}
std::int64_t CoordTableBase::num_entries() const {
    return static_cast<std::int64_t>(impl_->info().entries);
}
std::int64_t CoordTableBase::num_distinct() const {
    return static_cast<std::int64_t>(impl_->info().distinct);
}
int CoordTableBase::key_dim() const { return static_cast<int>(impl_->info().columns); }
Device CoordTableBase::device() const noexcept { return impl_->device; }
bool CoordTableBase::use_double_hash() const noexcept { return impl_->double_hash; }
CoordKey CoordTableBase::key() const { return impl_->info().key; }

PackedHashTable::PackedHashTable(std::optional<Capacity> capacity, Device device,
                                 bool use_double_hash)
    : CoordTableBase(device, {use_double_hash, slots_for(capacity), true, {}, RowRange::Packed64},
                     4) {}

PackedHashTable PackedHashTable::from_coords(Tensor const& coords, std::optional<Capacity> capacity,
                                             bool use_double_hash) {
    PackedHashTable made(capacity, coords.device(), use_double_hash);
    made.insert(coords);
    return made;
}

CoordTable::CoordTable(std::optional<Capacity> capacity, Device device, bool use_double_hash,
                       std::optional<int> key_dim, std::optional<std::uint64_t> seed)
    : CoordTableBase(device, {use_double_hash, slots_for(capacity), false, seed, RowRange::Int32},
                     check_key_dim(key_dim)) {}

CoordTable CoordTable::from_coords(Tensor const& coords, std::optional<Capacity> capacity,
                                   bool use_double_hash, std::optional<std::uint64_t> seed) {
    CoordTable made(capacity, coords.device(), use_double_hash, {}, seed);
    made.insert(coords);
    return made;
}

PackedHashTable128::PackedHashTable128(std::optional<Capacity> capacity, Device device,
                                       std::optional<int> key_dim)
    : CoordTableBase(device, {false, slots_for(capacity), false, {}, RowRange::Packed128},
                     check_key_dim(key_dim)) {}

PackedHashTable128 PackedHashTable128::from_keys(Tensor const& coords,
                                                 std::optional<Capacity> capacity) {
    PackedHashTable128 made(capacity, coords.device());
    made.insert(coords);
    return made;
}

}  // namespace tensorhash::coords
