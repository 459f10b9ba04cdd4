// ShardedMap's batches: routed before the lock is taken, prepared on all shards, then finished on all or on none.
#include "tensorhash/sharded/sharded_map.hpp"

#include <cmath>
#include <cstring>
#include <optional>
#include <set>
#include <string>

#include "map/get.hpp"
#include "map/results.hpp"
#include "sharded/grouped.hpp"
#include "sharded/impl.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash {

using sharded::Grouped;
using sharded::GroupedColumn;
using sharded::Routed;
using table::Answers;
using table::Batch;
using table::Reading;
using table::with_rows;
using table::Writing;

void sharded::check_devices(std::vector<Device> const& devices) {
    if (devices.empty()) {
        throw ValueError("devices: expected at least one, such as \"cpu:0\", got none");
    }
    std::set<int> seen;
    for (Device const device : devices) {
        if (device.is_cuda()) {
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
    std::uint64_t const most = table::kMaxEntries * shards;
    if (capacity.rows < 0 || static_cast<std::uint64_t>(capacity.rows) > most) {
        throw ValueError(std::string(argument) + ": expected 0 to " + std::to_string(most) +
                         " entries, got " + std::to_string(capacity.rows));
    }
    if (shards == 1 || capacity.rows == 0) {
        return static_cast<std::uint64_t>(capacity.rows);
    }
    // Five standard deviations: one shard in millions gets more of evenly spread keys.
    double const mean = static_cast<double>(capacity.rows) / static_cast<double>(shards);
    return std::min(table::kMaxEntries,
                    static_cast<std::uint64_t>(std::ceil(mean + 5 * std::sqrt(mean))));
}

namespace {

/// Files have room for so much of a name; a character is kept or dropped whole.
ShardPolicy with_short_name(ShardPolicy policy) {
    std::string& name = policy.name;
    if (name.size() > sharded::kMaxNameBytes) {
        std::size_t end = sharded::kMaxNameBytes;
        while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xc0) == 0x80) {
            --end;  // within a character of UTF-8
        }
        name.resize(end);
    }
    return policy;
}

}  // namespace

ShardedMap::Impl::Impl(Element key_element, std::vector<Element> value_elements,
                       std::vector<Device> on, ShardPolicy rule, std::vector<table::Table> shards,
                       std::vector<table::Ledger> books)
    : key(std::move(key_element)), values(std::move(value_elements)), devices(std::move(on)),
      policy(with_short_name(std::move(rule))), tables(std::move(shards)),
      ledgers(std::move(books)) {
    for (Device const device : devices) {
        pools.push_back(device.id);
    }
}

void ShardedMap::Impl::check_shard(std::size_t shard) const {
    if (shard >= tables.size()) {
        throw IndexError("shard: expected 0 to " + std::to_string(tables.size() - 1) + ", got " +
                         std::to_string(shard));
    }
}

void sharded::check_elements(Element const& key, std::vector<Element> const& values,
                             ShardPolicy const& policy, std::size_t shards) {
    table::check_elements(key, values);
    if (!policy.route) {
        throw ValueError("policy: expected a function, got none");
    }
    // A policy that does not take such keys says so now, not at the first batch.
    shards_of({Tensor::zeros(with_rows(1, key.shape), key.dtype), 1}, key, policy, shards);
}

ShardedMap::ShardedMap(Capacity init_capacity, Element key, std::vector<Element> values,
                       std::vector<Device> devices, ShardPolicy policy,
                       std::optional<std::uint64_t> seed) {
    sharded::check_devices(devices);
    sharded::check_elements(key, values, policy, devices.size());
    std::uint64_t const capacity =
        sharded::capacity_of_shard(init_capacity, devices.size(), "init_capacity");
    std::vector<table::Table> tables;
    for (std::size_t i = 0; i < devices.size(); ++i) {
        tables.emplace_back(key, values, capacity, sharded::seed_of_shard(seed, i));
    }
    impl_ = std::make_unique<Impl>(std::move(key), std::move(values), std::move(devices),
                                   std::move(policy), std::move(tables));
}

ShardedMap::ShardedMap(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ShardedMap::ShardedMap(ShardedMap&&) noexcept = default;
ShardedMap& ShardedMap::operator=(ShardedMap&&) noexcept = default;
ShardedMap::~ShardedMap() = default;

ShardedMap ShardedMap::from_items(Tensor const& keys, std::vector<Tensor> const& values,
                                  std::vector<Device> devices, ShardPolicy policy) {
    std::vector<Element> elements;
    for (std::size_t i = 0; i < values.size(); ++i) {
        elements.push_back(table::element_of(values[i], "values[" + std::to_string(i) + "]"));
    }
    ShardedMap map(Capacity{0}, table::element_of(keys, "keys"), std::move(elements),
                   std::move(devices), std::move(policy));
    map.insert(keys, values);
    return map;
}

Located ShardedMap::Impl::add(Routed const& routed, Batch keys, std::vector<Batch> columns,
                              std::vector<Reduce> const* reduce) {
    std::optional<sharded::RowOrder> order;
    if (!columns.empty()) {
        order.emplace(routed);
    }
    Grouped answers = Grouped::with_indices(routed);
    std::vector<std::optional<table::Adding>> adding(tables.size());
    std::vector<table::Bytes> from;

    Writing guard(lock);
    detach(keys);
    for (Batch& column : columns) {
        detach(column);
        from.push_back(column.data());
    }
    GroupedColumn const rows(routed, keys, key.bytes());
    prepare_or_cancel(adding, [&](std::size_t shard) {
        adding[shard] = tables[shard].prepare_add(
            rows.from(routed.begin(shard)), routed.rows(shard), answers.of(shard), key_source());
    });
    finish_shards([&](std::size_t shard) {
        if (reduce == nullptr) {
            tables[shard].finish_activate(std::move(*adding[shard]));
        } else {
            tables[shard].finish_upsert(std::move(*adding[shard]), from, *reduce,
                                        order ? order->of(shard) : nullptr);
        }
    });
    guard.unlock();
    return answers.located();
}

Located ShardedMap::insert(Tensor const& keys, std::vector<Tensor> const& values) {
    return accumulate(keys, values, {Reduce::First});
}

Located ShardedMap::insert_or_assign(Tensor const& keys, std::vector<Tensor> const& values) {
    return accumulate(keys, values, {Reduce::Last});
}

Located ShardedMap::accumulate(Tensor const& keys, std::vector<Tensor> const& values,
                               std::vector<Reduce> const& reduce) {
    impl_->require_unbounded("accumulate");
    Batch const batch = impl_->own(table::check_batch(keys, impl_->key, "keys"));
    std::vector<Batch> const columns = table::check_values(values, impl_->values, batch.rows);
    std::vector<Reduce> const reduces = table::check_reduce(reduce, impl_->values.size());
    return impl_->add(impl_->route(batch), batch, columns, &reduces);
}

Located ShardedMap::activate(Tensor const& keys) {
    impl_->require_unbounded("activate");
    Batch const batch = impl_->own(table::check_batch(keys, impl_->key, "keys"));
    return impl_->add(impl_->route(batch), batch, {}, nullptr);
}

Located ShardedMap::insert_into(std::size_t shard, Tensor const& keys,
                                std::vector<Tensor> const& values) {
    impl_->require_unbounded("insert_into");
    impl_->check_shard(shard);
    Batch const batch = impl_->own(table::check_batch(keys, impl_->key, "keys"));
    std::vector<Batch> const columns = table::check_values(values, impl_->values, batch.rows);
    Tensor const owner = impl_->shards_of(batch);
    for (std::size_t row = 0; row < batch.rows; ++row) {
        auto const at = static_cast<std::size_t>(owner.as<std::int32_t>()[row]);
        if (at != shard) {
            throw ValueError("keys: row " + std::to_string(row) + " belongs to " +
                             to_string(impl_->devices[at]) + ", not to " +
                             to_string(impl_->devices[shard]) +
                             "; insert() sends each row where it belongs");
        }
    }
    std::vector<Reduce> const reduces(impl_->values.size(), Reduce::First);
    return impl_->add(Routed(owner, shards()), batch, columns, &reduces);
}

Tensor ShardedMap::shard_of(Tensor const& keys) const {
    return impl_->shards_of(table::check_batch(keys, impl_->key, "keys"));
}

Located ShardedMap::find(Tensor const& keys) const {
    return impl_->find(table::check_batch(keys, impl_->key, "keys"));
}

Tensor ShardedMap::contains(Tensor const& keys) const { return find(keys).mask; }

Tensor ShardedMap::erase(Tensor const& keys) {
    Batch const batch = table::check_batch(keys, impl_->key, "keys");
    Routed const routed = impl_->route(batch);
    GroupedColumn const rows(routed, batch, impl_->key.bytes());
    Grouped answers(routed);
    std::vector<std::optional<table::Erasing>> erasing(shards());
    Writing guard(impl_->lock);
    impl_->each_shard([&](std::size_t shard) {
        erasing[shard] = impl_->tables[shard].prepare_erase(routed.rows(shard));
    });
    impl_->finish_shards([&](std::size_t shard) {
        impl_->tables[shard].finish_erase(*erasing[shard], rows.from(routed.begin(shard)),
                                          routed.rows(shard), answers.of(shard).mask);
    });
    impl_->end_batch(0);  // counts as a batch, uses nothing
    guard.unlock();
    return answers.mask();
}

std::vector<Tensor> ShardedMap::get(Tensor const& keys, std::vector<Tensor> const& defaults) const {
    return get_with_mask(keys, defaults).values;
}

ShardedMap::Found ShardedMap::get_with_mask(Tensor const& keys,
                                            std::vector<Tensor> const& defaults) const {
    Batch const batch = table::check_batch(keys, impl_->key, "keys");
    table::Values values(impl_->values, defaults, batch.rows);
    Routed const routed = impl_->route(batch);
    GroupedColumn const rows(routed, batch, impl_->key.bytes());
    sharded::RowOrder const order(routed);
    Grouped answers(routed);
    Reading guard(impl_->lock);
    impl_->each_shard([&](std::size_t shard) {
        table::Table const& here = impl_->tables[shard];
        Answers const found = answers.of(shard);
        here.find(rows.from(routed.begin(shard)), routed.rows(shard), found);
        values.gather_part(here, found.numbers, order.of(shard), routed.rows(shard));
    });
    guard.unlock();
    return {values.take(), answers.mask()};
}

Tensor ShardedMap::assign(Tensor const& keys, std::vector<Tensor> const& values) {
    impl_->require_unbounded("assign");
    Batch batch = table::check_batch(keys, impl_->key, "keys");
    std::vector<Batch> columns = table::check_values(values, impl_->values, batch.rows);
    Routed const routed = impl_->route(batch);
    sharded::RowOrder const order(routed);
    Grouped answers(routed);
    std::vector<table::Bytes> from;
    Writing guard(impl_->lock);
    impl_->detach(batch);
    for (Batch& column : columns) {
        impl_->detach(column);
        from.push_back(column.data());
    }
    GroupedColumn const rows(routed, batch, impl_->key.bytes());
    impl_->finish_shards([&](std::size_t shard) {
        impl_->tables[shard].assign(rows.from(routed.begin(shard)), routed.rows(shard), from,
                                    answers.of(shard), order.of(shard));
    });
    guard.unlock();
    return answers.mask();
}

}  // namespace tensorhash
