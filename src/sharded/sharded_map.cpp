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
        if (!device.is_cpu()) {
            require_cpu(device, "devices", "sharded tables");
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
    : key(std::move(key_element)), values(std::move(value_elements)), devices(std::move(on)),
      policy(with_short_name(std::move(rule))), tables(std::move(shards)),
      ledgers(std::move(shard_ledgers)) {
    for (Device const device : devices) {
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
                             ShardPolicy const& policy, std::size_t shards) {
    map::check_elements(key, values);
    if (!policy.route) {
        throw ValueError("policy: expected a function, got none");
    }
    // A policy that rejects such keys should fail now, not at the first batch.
    shards_of({Tensor::zeros(with_rows(1, key.shape), key.dtype), 1}, key, policy, shards);
}

std::unique_ptr<Routed> ShardedHashMap::Impl::route(CheckedBatch const& keys) const {
    bool const calls_policy = tables.size() > 1 && !sharded::is_hash_policy(policy);
    return route(keys, calls_policy ? shards_of(keys) : Tensor());
}

std::unique_ptr<Routed> ShardedHashMap::Impl::route(CheckedBatch const& keys,
                                                    Tensor shard_of_row) const {
    return backend::backend_for(devices[0], "devices")
        .route(map::key_rows(keys), key, tables.size(), std::move(shard_of_row), Device{});
}

bool ShardedHashMap::Impl::overlaps(void const* data, std::size_t bytes) const noexcept {
    return std::any_of(tables.begin(), tables.end(),
                       [&](auto const& table) { return table->overlaps(data, bytes); });
}

CheckedBatch ShardedHashMap::Impl::own(CheckedBatch batch) const {
    if (tables.size() > 1) {
        batch.tensor = batch.tensor.clone();
        if (key.dtype == Dtype::Bool) {  // they may have changed since they were checked
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
    sharded::check_elements(key, values, policy, devices.size());
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
    return impl_->write(map::check_keys_and_values(keys, impl_->key, values, impl_->values),
                        [](KeyRows rows, ValueRows columns, Answers out) {
                            return backend::Insert{rows, columns, out};
                        });
}

ShardedLocated ShardedHashMap::insert_or_assign(Tensor const& keys,
                                                std::vector<Tensor> const& values) {
    impl_->require_unbounded("insert_or_assign");
    return impl_->write(map::check_keys_and_values(keys, impl_->key, values, impl_->values),
                        [](KeyRows rows, ValueRows columns, Answers out) {
                            return backend::InsertOrAssign{rows, columns, out};
                        });
}

ShardedLocated ShardedHashMap::accumulate(Tensor const& keys, std::vector<Tensor> const& values,
                                          std::vector<Reduce> const& reduce) {
    impl_->require_unbounded("accumulate");
    KeysAndValues batch = map::check_keys_and_values(keys, impl_->key, values, impl_->values);
    std::vector<Reduce> const plain = map::resolve_reduce(reduce, impl_->values, batch);
    return impl_->write(std::move(batch), [&](KeyRows rows, ValueRows columns, Answers out) {
        return backend::Accumulate{rows, columns, plain, out};
    });
}

ShardedLocated ShardedHashMap::activate(Tensor const& keys) {
    impl_->require_unbounded("activate");
    return impl_->write(
        {map::check_batch(keys, impl_->key, "keys"), {}},
        [](KeyRows rows, ValueRows, Answers out) { return backend::Activate{rows, out}; });
}

ShardedLocated ShardedHashMap::insert_into(std::size_t shard, Tensor const& keys,
                                           std::vector<Tensor> const& values) {
    impl_->require_unbounded("insert_into");
    impl_->check_shard(shard);
    KeysAndValues batch = map::check_keys_and_values(keys, impl_->key, values, impl_->values);
    batch.keys = impl_->own(std::move(batch.keys));
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
    auto const routed = impl_->route(batch.keys, owner);
    return impl_->write(*routed, std::move(batch),
                        [](KeyRows rows, ValueRows columns, Answers out) {
                            return backend::Insert{rows, columns, out};
                        });
}

Tensor ShardedHashMap::shard_of(Tensor const& keys) const {
    return impl_->shards_of(map::check_batch(keys, impl_->key, "keys"));
}

ShardedLocated ShardedHashMap::find(Tensor const& keys) const {
    return impl_->find(map::check_batch(keys, impl_->key, "keys"));
}

Tensor ShardedHashMap::contains(Tensor const& keys) const { return find(keys).mask; }

Tensor ShardedHashMap::erase(Tensor const& keys) {
    CheckedBatch const batch = map::check_batch(keys, impl_->key, "keys");
    auto const routed = impl_->route(batch);
    GroupedColumn const rows(*routed, batch, impl_->key.bytes());
    Grouped answers(*routed);
    Writing guard(impl_->lock);
    impl_->change([&](std::size_t shard) -> backend::Change {
        return backend::Erase{impl_->part(rows, *routed, shard), answers.of(shard).mask};
    });
    impl_->end_batch(0);  // counts as a batch without uses
    guard.unlock();
    return answers.mask();
}

std::vector<Tensor> ShardedHashMap::get(Tensor const& keys,
                                        std::vector<Tensor> const& defaults) const {
    return get_with_mask(keys, defaults).values;
}

ShardedHashMap::ValuesAndMask ShardedHashMap::get_with_mask(
    Tensor const& keys, std::vector<Tensor> const& defaults) const {
    CheckedBatch const batch = map::check_batch(keys, impl_->key, "keys");
    map::Values values(impl_->values, defaults, batch.rows);
    Tensor mask =
        impl_->gather_found(batch, [&](backend::TableBackend const& shard, backend::Gather rows) {
            values.gather(shard, rows);
        });
    return {values.take(), std::move(mask)};
}

Tensor ShardedHashMap::assign(Tensor const& keys, std::vector<Tensor> const& values) {
    impl_->require_unbounded("assign");
    KeysAndValues batch = map::check_keys_and_values(keys, impl_->key, values, impl_->values);
    auto const routed = impl_->route(batch.keys);
    sharded::RowOrder const order(*routed);
    Grouped answers(*routed);
    Writing guard(impl_->lock);
    std::vector<backend::Bytes> const columns = map::detach_from(*impl_, batch);
    GroupedColumn const rows(*routed, batch.keys, impl_->key.bytes());
    impl_->finish_shards([&](std::size_t shard) {
        impl_->tables[shard]->assign(impl_->part(rows, *routed, shard), {columns, order.of(shard)},
                                     answers.of(shard));
    });
    guard.unlock();
    return answers.mask();
}

}  // namespace tensorhash
