// ShardedHashMap's batches: route before taking the lock, prepare on all shards, then finish on all
// or on none.
#include "tensorhash/sharded/sharded_map.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "map/get.hpp"
#include "sharded/impl.hpp"
#include "table/limits.hpp"
#include "tensor/allocators.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash {

using backend::Answers;
using backend::KeyRows;
using backend::Routed;
using backend::ValueRows;
using map::CheckedBatch;
using map::KeysAndValues;
using map::Reading;
using map::Writing;
using sharded::Grouped;
using sharded::GroupedColumn;

void sharded::check_devices(std::vector<Device> const& devices) {
    if (devices.empty()) {
        throw ValueError("devices: expected at least one, such as \"cpu:0\", got none");
    }
    std::set<int> seen;
    for (Device const device : devices) {
        if (device.type != devices[0].type) {
            throw ValueError("devices: expected devices of one type, got \"" +
                             to_string(devices[0]) + "\" and \"" + to_string(device) + "\"");
        }
        if (!device.is_cpu()) {
            require_usable(device, "devices");
        }
        if (device.id < 0 || device.id >= static_cast<int>(runtime::kMaxDevices)) {
            throw ValueError(
                "devices: expected \"cpu:0\" to \"cpu:" + std::to_string(runtime::kMaxDevices - 1) +
                "\", got \"" + to_string(device) + "\"");
        }
        if (!seen.insert(device.id).second) {
            throw ValueError("devices: expected each device once, got \"" + to_string(device) +
                             "\" twice");
        }
    }
}

std::uint64_t sharded::capacity_of_shard(Capacity capacity, std::size_t shards,
                                         char const* argument) {
    std::uint64_t const rows = map::check_capacity(capacity, argument, shards);
    if (shards == 1 || rows == 0) {
        return rows;
    }
    // Five standard deviations: if keys spread at random, one shard in millions gets more.
    double const mean = static_cast<double>(rows) / static_cast<double>(shards);
    return std::min(table::kMaxEntries,
                    static_cast<std::uint64_t>(std::ceil(mean + 5 * std::sqrt(mean))));
}

namespace {

/// What a policy has chosen.
backend::Sharding given(Tensor shard_of_row, std::size_t shards) {
    return {shards, backend::ShardRule::Given, std::move(shard_of_row)};
}

/// Truncates the name to what a file can hold, without splitting a character.
ShardPolicy with_short_name(ShardPolicy policy) {
    std::string& name = policy.name;
    if (name.size() > sharded::kMaxNameBytes) {
        std::size_t end = sharded::kMaxNameBytes;
        while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xc0) == 0x80) {
            --end;  // inside a UTF-8 character
        }
        name.resize(end);
    }
    return policy;
}

}  // namespace

ShardedHashMap::Impl::Impl(Element key_element, std::vector<Element> value_elements,
                           std::vector<Device> on, ShardPolicy rule, sharded::Tables shards,
                           std::vector<table::Ledger> shard_ledgers)
    : TableLock(on), key(std::move(key_element)), values(std::move(value_elements)),
      devices(std::move(on)), policy(with_short_name(std::move(rule))), tables(std::move(shards)),
      ledgers(std::move(shard_ledgers)) {
    for (Device const device : devices) {
        memory.push_back(device.is_cpu() ? Device{} : device);
        pools.push_back(device.id);
    }
}

void ShardedHashMap::Impl::check_shard(std::size_t shard) const {
    if (shard >= tables.size()) {
        throw IndexError("shard: expected 0 to " + std::to_string(tables.size() - 1) + ", got " +
                         std::to_string(shard));
    }
}

void sharded::check_elements(Element const& key, std::vector<Element> const& values,
                             ShardPolicy const& policy, std::vector<Device> const& devices) {
    map::check_elements(key, values);
    if (!policy.route) {
        throw ValueError("policy: expected a function, got none");
    }
    check_policy(policy, devices);
    // A policy that rejects such keys should fail now, not at the first batch.
    shards_of({Tensor::zeros(with_rows(1, key.shape), key.dtype), 1}, key, policy, devices.size());
}

void sharded::check_policy(ShardPolicy const& policy, std::vector<Device> const& devices) {
    if (!devices[0].is_cpu() && rule_of(policy) == backend::ShardRule::Given) {
        throw DeviceError("policy: shards on \"" + to_string(devices[0]) +
                          "\" take \"hash\" or \"mod\", got \"" + policy.name +
                          "\"; use one of them, or a table on the CPU, such as that of .cpu()");
    }
}

std::unique_ptr<Routed> ShardedHashMap::Impl::route(CheckedBatch const& keys) const {
    backend::ShardRule const rule = sharded::rule_of(policy);
    bool const calls_policy = is_on_cpu() && tables.size() > 1 && rule != backend::ShardRule::Hash;
    return route(keys, calls_policy ? given(shards_of(keys), tables.size())
                                    : backend::Sharding{tables.size(), rule, {}});
}

std::unique_ptr<Routed> ShardedHashMap::Impl::route(CheckedBatch const& keys,
                                                    backend::Sharding sharding) const {
    Device const at = keys.tensor.device();
    return backend::backend_for(at, "devices")
        .route(map::key_rows(keys), key, std::move(sharding), at);
}

Tensor ShardedHashMap::Impl::shards_of(CheckedBatch const& keys) const {
    CheckedBatch const here{keys.tensor.to(Device{}), keys.rows};
    return sharded::shards_of(here, key, policy, tables.size());
}

Device ShardedHashMap::Impl::device_for(Tensor const& keys) const noexcept {
    bool const has_shard = std::find(memory.begin(), memory.end(), keys.device()) != memory.end();
    return has_shard ? keys.device() : memory[0];
}

void ShardedHashMap::Impl::require_cpu(char const* call) const {
    map::require_table_on_cpu(memory[0], call, ".cpu()");
}

bool ShardedHashMap::Impl::overlaps(void const* data, std::size_t bytes) const noexcept {
    return std::any_of(tables.begin(), tables.end(),
                       [&](auto const& table) { return table->overlaps(data, bytes); });
}

CheckedBatch ShardedHashMap::Impl::own(CheckedBatch batch) const {
    if (tables.size() > 1) {
        batch.tensor = batch.tensor.clone();
        // They may have changed since they were checked.
        if (key.dtype == Dtype::Bool && is_on_cpu()) {
            canonicalize_bools(static_cast<unsigned char*>(batch.tensor.data()),
                               batch.tensor.bytes());
        }
    }
    return batch;
}

void ShardedHashMap::Impl::cancel(
    std::vector<std::unique_ptr<backend::Prepared>> prepared) noexcept {
    for (std::size_t shard = 0; shard < prepared.size(); ++shard) {
        if (prepared[shard]) {
            tables[shard]->cancel(std::move(prepared[shard]));
        }
    }
}

ShardedHashMap::ShardedHashMap(Capacity init_capacity, Element key, std::vector<Element> values,
                               std::vector<Device> devices, ShardPolicy policy,
                               std::optional<std::uint64_t> seed) {
    sharded::check_devices(devices);
    sharded::check_elements(key, values, policy, devices);
    std::uint64_t const capacity =
        sharded::capacity_of_shard(init_capacity, devices.size(), "init_capacity");
    sharded::Tables tables;
    for (std::size_t i = 0; i < devices.size(); ++i) {
        tables.push_back(
            backend::backend_for(devices[i], "devices")
                .make_table({key, values, capacity, sharded::seed_of_shard(seed, i)}, devices[i]));
    }
    impl_ = std::make_unique<Impl>(std::move(key), std::move(values), std::move(devices),
                                   std::move(policy), std::move(tables));
}

ShardedHashMap::ShardedHashMap(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ShardedHashMap::ShardedHashMap(ShardedHashMap&&) noexcept = default;
ShardedHashMap& ShardedHashMap::operator=(ShardedHashMap&&) noexcept = default;
ShardedHashMap::~ShardedHashMap() = default;

ShardedHashMap ShardedHashMap::from_items(Tensor const& keys, std::vector<Tensor> const& values,
                                          std::vector<Device> devices, ShardPolicy policy) {
    std::vector<Element> elements = map::elements_of(values);
    ShardedHashMap made(Capacity{0}, map::element_of(keys, "keys"), std::move(elements),
                        std::move(devices), std::move(policy));
    made.insert(keys, values);
    return made;
}

ShardedLocated ShardedHashMap::insert(Tensor const& keys, std::vector<Tensor> const& values) {
    impl_->require_unbounded("insert");
    return impl_->write(impl_->check(keys, values),
                        [](KeyRows rows, ValueRows columns, Answers out) {
                            return backend::Insert{rows, columns, out};
                        });
}

ShardedLocated ShardedHashMap::insert_or_assign(Tensor const& keys,
                                                std::vector<Tensor> const& values) {
    impl_->require_unbounded("insert_or_assign");
    return impl_->write(impl_->check(keys, values),
                        [](KeyRows rows, ValueRows columns, Answers out) {
                            return backend::InsertOrAssign{rows, columns, out};
                        });
}

ShardedLocated ShardedHashMap::accumulate(Tensor const& keys, std::vector<Tensor> const& values,
                                          std::vector<Reduce> const& reduce) {
    impl_->require_unbounded("accumulate");
    KeysAndValues batch = impl_->check(keys, values);
    std::vector<Reduce> const plain = map::resolve_reduce(reduce, impl_->values, batch);
    return impl_->write(std::move(batch), [&](KeyRows rows, ValueRows columns, Answers out) {
        return backend::Accumulate{rows, columns, plain, out};
    });
}

ShardedLocated ShardedHashMap::activate(Tensor const& keys) {
    impl_->require_unbounded("activate");
    return impl_->write({impl_->check_keys(keys), {}}, [](KeyRows rows, ValueRows, Answers out) {
        return backend::Activate{rows, out};
    });
}

ShardedLocated ShardedHashMap::insert_into(std::size_t shard, Tensor const& keys,
                                           std::vector<Tensor> const& values) {
    impl_->require_unbounded("insert_into");
    impl_->check_shard(shard);
    KeysAndValues batch = impl_->check(keys, values);
    batch.keys = impl_->own(std::move(batch.keys));
    auto const insert_rows = [&](Routed const& routed) {
        return impl_->write(routed, std::move(batch),
                            [](KeyRows rows, ValueRows columns, Answers out) {
                                return backend::Insert{rows, columns, out};
                            });
    };
    if (!impl_->is_on_cpu()) {
        auto const routed = impl_->route(batch.keys);
        if (routed->rows(shard) == batch.keys.rows) {
            return insert_rows(*routed);
        }
    }
    Tensor const owner = impl_->shards_of(batch.keys);
    for (std::size_t row = 0; row < batch.keys.rows; ++row) {
        auto const at = static_cast<std::size_t>(owner.as<std::int32_t>()[row]);
        if (at != shard) {
            throw ValueError("keys: row " + std::to_string(row) + " belongs to " +
                             to_string(impl_->devices[at]) + ", not to " +
                             to_string(impl_->devices[shard]) +
                             "; use insert(), which sends each row to its shard");
        }
    }
    return insert_rows(*impl_->route(batch.keys, given(owner, shards())));
}

Tensor ShardedHashMap::shard_of(Tensor const& keys) const {
    CheckedBatch const batch = impl_->check_keys(keys);
    return impl_->shards_of(batch).to(batch.home);
}

ShardedLocated ShardedHashMap::find(Tensor const& keys) const {
    CheckedBatch const batch = impl_->check_keys(keys);
    return impl_->is_on_cpu() ? impl_->find(batch) : impl_->find_on_devices(batch);
}

Tensor ShardedHashMap::contains(Tensor const& keys) const { return find(keys).mask; }

Tensor ShardedHashMap::erase(Tensor const& keys) {
    CheckedBatch const batch = impl_->check_keys(keys);
    auto const routed = impl_->route(batch);
    GroupedColumn const rows(*routed, impl_->placement(batch), batch, impl_->key.bytes());
    Grouped answers(*routed, impl_->placement(batch));
    Writing guard = impl_->writing();
    impl_->change([&](std::size_t shard) -> backend::Change {
        return backend::Erase{impl_->part(rows, *routed, shard), answers.of(shard).mask};
    });
    impl_->end_batch(0);  // counts as a batch without uses
    guard.unlock();
    map::mark_read(batch);
    return answers.mask(batch.home);
}

std::vector<Tensor> ShardedHashMap::get(Tensor const& keys,
                                        std::vector<Tensor> const& defaults) const {
    return get_with_mask(keys, defaults).values;
}

ShardedHashMap::ValuesAndMask ShardedHashMap::get_with_mask(
    Tensor const& keys, std::vector<Tensor> const& defaults) const {
    CheckedBatch const batch = impl_->check_keys(keys);
    if (!impl_->is_on_cpu()) {
        return impl_->get_on_devices(batch, defaults);
    }
    map::Values values(impl_->values, defaults, batch.rows);
    Tensor mask =
        impl_->gather_found(batch, [&](backend::TableBackend const& shard, backend::Gather rows) {
            values.gather(shard, rows);
        });
    return {values.take(), std::move(mask)};
}

Tensor ShardedHashMap::assign(Tensor const& keys, std::vector<Tensor> const& values) {
    impl_->require_unbounded("assign");
    KeysAndValues batch = impl_->check(keys, values);
    auto const routed = impl_->route(batch.keys);
    sharded::Placement const at = impl_->placement(batch.keys);
    sharded::GroupedValues columns(*routed, at, batch.values.size());
    Grouped answers(*routed, at);
    Writing guard = impl_->writing();
    std::vector<backend::Bytes> addresses = map::detach_from(*impl_, batch);
    GroupedColumn const rows(*routed, at, batch.keys, impl_->key.bytes());
    columns.take(batch.values, std::move(addresses), impl_->values);
    impl_->change([&](std::size_t shard) -> backend::Change {
        return backend::Assign{impl_->part(rows, *routed, shard), columns.of(shard),
                               answers.of(shard)};
    });
    guard.unlock();
    map::mark_read(batch);
    return answers.mask(batch.keys.home);
}

}  // namespace tensorhash
