// ShardedHashMap without batches: listings, views, sizes, and changes of whole shards.
#include <string>
#include <utility>

#include "sharded/impl.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash {

using map::listed;
using map::Reading;
using map::Writing;

Tensor sharded::joined(std::vector<Tensor> const& parts, Element const& element) {
    Device const device = parts[0].device();
    std::size_t rows = 0;
    for (Tensor const& part : parts) {
        rows += static_cast<std::size_t>(part.shape()[0]);
    }
    Tensor out = Tensor::empty(with_rows(rows, element.shape), element.dtype, device);
    auto* at = static_cast<unsigned char*>(out.data());
    for (Tensor const& part : parts) {
        part.copy_to(at, device);
        at += part.bytes();
    }
    return map::deliver(std::move(out), device);
}

Tensor ShardedHashMap::active_buf_indices() const {
    Reading const guard = impl_->reading();
    std::vector<Tensor> parts(shards());
    impl_->each_shard([&](std::size_t shard) {
        Tensor const local = listed(*impl_->tables[shard]).to(Device{});
        parts[shard] = Tensor::empty(local.shape(), Dtype::Int64);
        auto const global = parts[shard].as_mutable<std::int64_t>();
        for (std::size_t i = 0; i < global.size(); ++i) {
            global[i] = global_index(static_cast<std::int64_t>(shard), local.as<std::int32_t>()[i]);
        }
    });
    return sharded::joined(parts, {Dtype::Int64, {}}).to(impl_->memory[0]);
}

Tensor ShardedHashMap::keys() const {
    Reading const guard = impl_->reading();
    std::vector<Tensor> parts(shards());
    impl_->each_shard([&](std::size_t shard) {
        parts[shard] = map::items_of(*impl_->tables[shard], impl_->key, {}).keys;
    });
    return sharded::joined(parts, impl_->key);
}

Items ShardedHashMap::items() const {
    Reading const guard = impl_->reading();
    std::vector<Items> parts(shards());
    impl_->each_shard([&](std::size_t shard) {
        parts[shard] = map::items_of(*impl_->tables[shard], impl_->key, impl_->values);
    });
    std::vector<Tensor> column;
    for (Items const& part : parts) {
        column.push_back(part.keys);
    }
    Items all{sharded::joined(column, impl_->key), {}};
    for (std::size_t i = 0; i < impl_->values.size(); ++i) {
        for (std::size_t shard = 0; shard < shards(); ++shard) {
            column[shard] = parts[shard].values[i];
        }
        all.values.push_back(sharded::joined(column, impl_->values[i]));
    }
    return all;
}

Items ShardedHashMap::items(std::size_t shard) const {
    impl_->check_shard(shard);
    Reading const guard = impl_->reading();
    return map::items_of(*impl_->tables[shard], impl_->key, impl_->values);
}

Tensor ShardedHashMap::key_tensor(std::size_t shard) const {
    impl_->check_shard(shard);
    Reading const guard = impl_->reading();
    return impl_->tables[shard]->key_tensor();
}

Tensor ShardedHashMap::value_tensor(std::size_t shard, std::size_t column) const {
    impl_->check_shard(shard);
    map::check_column(column, impl_->values.size(), "value_buffer_id");
    Reading const guard = impl_->reading();
    return impl_->tables[shard]->value_tensor(column);
}

void ShardedHashMap::reserve(Capacity capacity) {
    if (impl_->is_bounded()) {
        // A bounded table has all its memory from the start.
        if (capacity.rows < 0 || capacity.rows > this->capacity()) {
            throw ValueError("capacity: expected 0 to " + std::to_string(this->capacity()) +
                             ", got " + std::to_string(capacity.rows));
        }
        return;
    }
    std::uint64_t const rows = sharded::capacity_of_shard(capacity, shards(), "capacity");
    Writing const guard = impl_->writing();
    impl_->change([&](std::size_t) -> backend::Change { return backend::Reserve{rows}; });
}

void ShardedHashMap::shrink_to_fit() {
    if (impl_->is_bounded()) {
        return;
    }
    Writing const guard = impl_->writing();
    impl_->change([](std::size_t) -> backend::Change { return backend::Shrink{}; });
}

void ShardedHashMap::clear() {
    Writing const guard = impl_->writing();
    impl_->finish_shards([&](std::size_t shard) { impl_->tables[shard]->clear(); });
    impl_->forget_victims();
}

std::vector<Tensor> ShardedHashMap::compact() {
    std::vector<Tensor> moved(shards());
    Writing const guard = impl_->writing();
    impl_->change([&](std::size_t shard) -> backend::Change {
        moved[shard] = map::make_old_to_new(*impl_->tables[shard]);
        return backend::Compact{static_cast<std::int32_t*>(moved[shard].data())};
    });
    for (Tensor& one : moved) {
        Device const where = one.device();
        one = map::deliver(std::move(one), where);
    }
    impl_->forget_victims();
    return moved;
}

ShardedHashMap ShardedHashMap::clone() const {
    sharded::Tables copies(shards());
    ShardPolicy policy = impl_->policy;  // outside the lock: the policy may be the caller's code
    Reading const guard = impl_->reading();
    impl_->each_shard([&](std::size_t shard) { copies[shard] = impl_->tables[shard]->clone(); });
    std::vector<table::Ledger> ledgers;
    for (table::Ledger const& ledger : impl_->ledgers) {
        ledgers.push_back(ledger.copy());
    }
    return ShardedHashMap(std::make_unique<Impl>(impl_->key, impl_->values, impl_->devices,
                                                 std::move(policy), std::move(copies),
                                                 std::move(ledgers)));
}

std::int64_t ShardedHashMap::size() const {
    Reading const guard = impl_->reading();
    std::uint64_t sum = 0;
    for (auto const& table : impl_->tables) {
        sum += table->sizes().entries;
    }
    return static_cast<std::int64_t>(sum);
}

std::int64_t ShardedHashMap::size(std::size_t shard) const {
    impl_->check_shard(shard);
    Reading const guard = impl_->reading();
    return static_cast<std::int64_t>(impl_->tables[shard]->sizes().entries);
}

std::int64_t ShardedHashMap::capacity() const {
    Reading const guard = impl_->reading();
    std::uint64_t sum = 0;
    for (auto const& table : impl_->tables) {
        sum += table->sizes().capacity;
    }
    return static_cast<std::int64_t>(sum);
}

std::int64_t ShardedHashMap::capacity(std::size_t shard) const {
    impl_->check_shard(shard);
    Reading const guard = impl_->reading();
    return static_cast<std::int64_t>(impl_->tables[shard]->sizes().capacity);
}

Element const& ShardedHashMap::key_element() const noexcept { return impl_->key; }
std::vector<Element> const& ShardedHashMap::value_elements() const noexcept {
    return impl_->values;
}
std::size_t ShardedHashMap::shards() const noexcept { return impl_->tables.size(); }
std::vector<Device> const& ShardedHashMap::devices() const noexcept { return impl_->devices; }
ShardPolicy const& ShardedHashMap::policy() const noexcept { return impl_->policy; }

std::size_t ShardedHashMap::shard_on(Device device) const {
    std::string names;
    for (std::size_t shard = 0; shard < shards(); ++shard) {
        if (impl_->devices[shard] == device) {
            return shard;
        }
        names += (shard == 0 ? "" : ", ") + to_string(impl_->devices[shard]);
    }
    throw ValueError("device: expected one of " + names + ", got " + to_string(device));
}

MemoryUsage ShardedHashMap::memory_usage() const {
    Reading const guard = impl_->reading();
    MemoryUsage sum;
    for (std::size_t shard = 0; shard < shards(); ++shard) {
        MemoryUsage const one = impl_->is_bounded() ? table::memory_of(impl_->bounded(shard))
                                                    : impl_->tables[shard]->memory_usage();
        sum.keys += one.keys;
        sum.values += one.values;
        sum.index += one.index;
        sum.bookkeeping += one.bookkeeping;
    }
    return sum;
}

void ShardedHashMap::validate() const {
    std::vector<Tensor> keys(shards());
    {
        Reading const guard = impl_->reading();
        for (table::Ledger const& ledger : impl_->ledgers) {
            if (ledger.clock != impl_->ledgers[0].clock || ledger.uses != impl_->ledgers[0].uses) {
                throw CorruptTable("table: its shards have seen different batches");
            }
        }
        impl_->each_shard([&](std::size_t shard) {
            impl_->tables[shard]->validate();
            if (impl_->is_bounded()) {
                table::validate_uses(impl_->bounded(shard));
            }
            keys[shard] = map::items_of(*impl_->tables[shard], impl_->key, {}).keys.to(Device{});
        });
    }
    // Outside the lock: the policy may be the caller's code.
    for (std::size_t shard = 0; shard < shards(); ++shard) {
        auto const rows = static_cast<std::size_t>(keys[shard].shape()[0]);
        Tensor const owner = impl_->shards_of({keys[shard], rows});
        for (std::int32_t const at : owner.as<std::int32_t>()) {
            if (at != static_cast<std::int32_t>(shard)) {
                throw CorruptTable("table: shard " + std::to_string(shard) +
                                   " holds a key that the policy assigns to shard " +
                                   std::to_string(at));
            }
        }
    }
}

}  // namespace tensorhash
