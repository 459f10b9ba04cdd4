// The public tables: arguments are checked here, the work is the store's.
#include "tensorhash/coords/packed_hash_table.hpp"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "coords/tables/coord_store.hpp"
#include "map/arguments.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::coords {
namespace {

std::optional<std::uint64_t> slots_for(std::optional<Capacity> capacity) {
    if (!capacity) {
        return {};
    }
    std::uint64_t const keys = map::check_capacity(*capacity, "capacity");
    return std::bit_ceil(std::max<std::uint64_t>(keys, 1));
}

std::unique_ptr<CoordStore> make_store(Device device, StoreRules const& rules,
                                       std::uint32_t columns) {
    require_usable(device, "device");
    return std::make_unique<CoordStore>(rules, columns);
}

std::uint32_t check_key_dim(std::optional<int> key_dim) {
    if (key_dim && (*key_dim < 1 || *key_dim > static_cast<int>(kMaxColumns))) {
        throw ValueError("key_dim: expected 1 to " + std::to_string(kMaxColumns) + ", got " +
                         std::to_string(*key_dim));
    }
    return static_cast<std::uint32_t>(key_dim.value_or(0));
}

}  // namespace

CoordTableBase::CoordTableBase(std::unique_ptr<CoordStore> store) : store_(std::move(store)) {}
CoordTableBase::CoordTableBase(CoordTableBase&&) noexcept = default;
CoordTableBase& CoordTableBase::operator=(CoordTableBase&&) noexcept = default;
CoordTableBase::~CoordTableBase() = default;

void CoordTableBase::insert(Tensor const& coords) { store_->insert(coords, "coords"); }

Tensor CoordTableBase::search(Tensor const& query, SearchMode mode) const {
    if (mode < SearchMode::Linear || mode > SearchMode::WarpCoop) {
        throw ValueError("mode: expected LINEAR, DOUBLE_HASH or WARP_COOP (0, 1, 2), got " +
                         std::to_string(static_cast<int>(mode)));
    }
    return store_->search(
        query, mode == SearchMode::WarpCoop ? cpu::FlatWindow::FourLines : cpu::FlatWindow::Line);
}

Tensor CoordTableBase::batched_search(Tensor const& queries, Tensor const& offsets) const {
    return store_->batched_search(queries, offsets);
}

void CoordTableBase::clear() { store_->clear(); }
void CoordTableBase::grow_on_demand() { store_->grow_on_demand(); }
bool CoordTableBase::grows() const { return store_->grows(); }

void CoordTableBase::expand_with_offsets(Tensor const& base, Tensor const& offsets) {
    store_->expand(base, offsets);
}

Tensor CoordTableBase::vector_keys() const { return store_->vector_keys(); }
Tensor CoordTableBase::unique_index() const { return store_->unique_index(); }
Tensor CoordTableBase::keys_tensor() const { return store_->keys_tensor(); }
Tensor CoordTableBase::values_tensor() const { return store_->values_tensor(); }
std::int64_t CoordTableBase::capacity() const { return store_->capacity(); }
std::int64_t CoordTableBase::num_entries() const { return store_->num_entries(); }
std::int64_t CoordTableBase::num_distinct() const { return store_->num_distinct(); }
int CoordTableBase::key_dim() const { return static_cast<int>(store_->columns()); }
bool CoordTableBase::use_double_hash() const noexcept { return store_->double_hash(); }
CoordKey CoordTableBase::key() const { return store_->key(); }

PackedHashTable::PackedHashTable(std::optional<Capacity> capacity, Device device,
                                 bool use_double_hash)
    : CoordTableBase(make_store(
          device, {{use_double_hash, slots_for(capacity), true, {}}, RowRange::Packed64}, 4)) {}

PackedHashTable PackedHashTable::from_coords(Tensor const& coords, std::optional<Capacity> capacity,
                                             bool use_double_hash) {
    PackedHashTable made(capacity, coords.device(), use_double_hash);
    made.insert(coords);
    return made;
}

CoordTable::CoordTable(std::optional<Capacity> capacity, Device device, bool use_double_hash,
                       std::optional<int> key_dim, std::optional<std::uint64_t> seed)
    : CoordTableBase(
          make_store(device, {{use_double_hash, slots_for(capacity), false, seed}, RowRange::Int32},
                     check_key_dim(key_dim))) {}

CoordTable CoordTable::from_coords(Tensor const& coords, std::optional<Capacity> capacity,
                                   bool use_double_hash, std::optional<std::uint64_t> seed) {
    CoordTable made(capacity, coords.device(), use_double_hash, {}, seed);
    made.insert(coords);
    return made;
}

PackedHashTable128::PackedHashTable128(std::optional<Capacity> capacity, Device device,
                                       std::optional<int> key_dim)
    : CoordTableBase(make_store(device,
                                {{false, slots_for(capacity), false, {}}, RowRange::Packed128},
                                check_key_dim(key_dim))) {}

PackedHashTable128 PackedHashTable128::from_keys(Tensor const& coords,
                                                 std::optional<Capacity> capacity) {
    PackedHashTable128 made(capacity, coords.device());
    made.insert(coords);
    return made;
}

}  // namespace tensorhash::coords
