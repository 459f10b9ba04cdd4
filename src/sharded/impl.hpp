// The members of a ShardedHashMap, for the files that implement it.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "backend/loader.hpp"
#include "backend/table_backend.hpp"
#include "map/results.hpp"
#include "map/table_lock.hpp"
#include "runtime/parallel.hpp"
#include "sharded/grouped.hpp"
#include "sharded/route.hpp"
#include "table/bounded_batch.hpp"
#include "table/cpu_table.hpp"
#include "tensor/bools.hpp"
#include "tensorhash/sharded/sharded_map.hpp"

namespace tensorhash {
namespace sharded {

/// The maximum length of a policy's name in bytes.
inline constexpr std::size_t kMaxNameBytes = 256;

/// Throws unless there is at least one device, shards can use all of them, and none is repeated.
void check_devices(std::vector<Device> const& devices);

/// Throws unless tables can hold these keys and values and the policy accepts such keys.
void check_elements(Element const& key, std::vector<Element> const& values,
                    ShardPolicy const& policy, std::vector<Device> const& devices);
/// Throws DeviceError unless shards on these devices can route by the policy.
void check_policy(ShardPolicy const& policy, std::vector<Device> const& devices);

/// The capacity of each shard, so that `capacity` keys fit when they are spread at random.
std::uint64_t capacity_of_shard(Capacity capacity, std::size_t shards, char const* argument);

/// The seed of one shard's table, if the caller gave a seed.
inline std::optional<std::uint64_t> seed_of_shard(std::optional<std::uint64_t> seed,
                                                  std::size_t shard) {
    return seed ? std::optional(*seed + shard) : std::nullopt;
}

using Tables = std::vector<std::unique_ptr<backend::TableBackend>>;

/// The tensors of all shards, concatenated.
Tensor joined(std::vector<Tensor> const& parts, Element const& element);

}  // namespace sharded

/// One lock for all shards: a batch changes them together, and a reader sees all of a batch or none
/// of it.
struct ShardedHashMap::Impl : map::TableLock {
    Impl(Element key_element, std::vector<Element> value_elements, std::vector<Device> on,
         ShardPolicy rule, sharded::Tables shards, std::vector<table::Ledger> shard_ledgers = {});

    Element const key;
    std::vector<Element> const values;
    std::vector<Device> const devices;
    std::vector<Device> memory;  // of each shard; Device{} if it is on the CPU
    std::vector<int> pools;      // the ids of the devices
    ShardPolicy const policy;
    sharded::Tables tables;
    std::vector<table::Ledger> ledgers;  // one per shard if the table is bounded, else none

    bool is_on_cpu() const noexcept { return memory[0].is_cpu(); }
    /// Throws a DeviceError that names the call unless the table is on the CPU.
    void require_cpu(char const* call) const;
    /// The device that routes a call with these keys: their own if it has a shard, else the first.
    Device device_for(Tensor const& keys) const noexcept;
    sharded::Placement placement(map::CheckedBatch const& keys) const noexcept {
        return {keys.tensor.device(), memory};
    }
    map::CheckedBatch check_keys(Tensor const& keys) const {
        return map::check_batch(keys, key, "keys", device_for(keys));
    }
    map::KeysAndValues check(Tensor const& keys, std::vector<Tensor> const& columns) const {
        return map::check_keys_and_values(keys, key, columns, values, device_for(keys));
    }

    /// int32 [N] on the CPU, where the policy runs.
    Tensor shards_of(map::CheckedBatch const& keys) const;
    /// Groups the rows by shard. On the CPU it calls the policy only if there are several shards
    /// and it is not the built-in hash.
    std::unique_ptr<backend::Routed> route(map::CheckedBatch const& keys) const;
    std::unique_ptr<backend::Routed> route(map::CheckedBatch const& keys,
                                           backend::Sharding sharding) const;
    /// Whether the memory lies in a shard's own buffers; see map::detach_from().
    bool overlaps(void const* data, std::size_t bytes) const noexcept;
    /// Copies the caller's keys if there are several shards: the policy and the shards must see the
    /// same keys, even if the caller changes them. A single table makes its own copy.
    map::CheckedBatch own(map::CheckedBatch batch) const;
    /// A shard's part of grouped keys.
    backend::KeyRows part(sharded::GroupedColumn const& keys, backend::Routed const& routed,
                          std::size_t shard) const noexcept {
        return {keys.of(shard), routed.rows(shard),
                tables.size() > 1 ? backend::KeySource::Private : backend::KeySource::Caller};
    }
    void check_shard(std::size_t shard) const;

    bool is_bounded() const noexcept { return !ledgers.empty(); }
    /// Bounded shards are on the CPU.
    table::BoundedState bounded(std::size_t shard) noexcept {
        return {table::on_cpu(*tables[shard]), ledgers[shard]};
    }
    /// The shards' columns: the caller's, then the hidden two of a bounded table.
    std::vector<Element> elements() const {
        return is_bounded() ? table::with_hidden(values) : values;
    }
    /// Both throw ValueError that names the verb.
    void require_unbounded(char const* verb) const;
    void require_bounded(char const* verb) const;
    /// Counts a batch of `rows` rows in every shard's ledger. Does nothing if the table is not
    /// bounded.
    void end_batch(std::size_t rows) noexcept {
        for (table::Ledger& ledger : ledgers) {
            ledger.end_batch(rows);
        }
    }
    void forget_victims() noexcept {
        for (table::Ledger& ledger : ledgers) {
            ledger.victims.forget();
        }
    }

    /// Runs work(shard) for all shards at once, each on its own threads. After all have ended,
    /// rethrows the exception of the lowest shard. Devices besides the CPU work at once because
    /// their calls return early, so this thread makes the calls, on its streams.
    template <class Work>
    void each_shard(Work&& work) const {
        if (!is_on_cpu()) {
            for (std::size_t shard = 0; shard < tables.size(); ++shard) {
                work(shard);
            }
            return;
        }
        std::vector<std::exception_ptr> errors(tables.size());
        runtime::run_on_devices(pools, [&](std::size_t shard) {
            try {
                work(shard);
            } catch (...) {
                errors[shard] = std::current_exception();
            }
        });
        for (std::exception_ptr const& error : errors) {
            if (error) {
                std::rethrow_exception(error);
            }
        }
    }
    /// The same for work that cannot fail. It allocates nothing, so that a change prepared on all
    /// shards is finished on all.
    template <class Work>
    void finish_shards(Work&& work) const noexcept {
        if (!is_on_cpu()) {
            for (std::size_t shard = 0; shard < tables.size(); ++shard) {
                work(shard);
            }
            return;
        }
        runtime::run_on_devices(pools, [&](std::size_t shard) { work(shard); });
    }

    /// Makes the change that change_of(shard) returns on every shard, or on none.
    template <class ChangeOf>
    void change(ChangeOf&& change_of) {
        change(change_of, [](std::size_t) {});
    }
    /// The same, then after(shard) on each shard, which cannot fail.
    template <class ChangeOf, class After>
    void change(ChangeOf&& change_of, After&& after) {
        std::vector<std::unique_ptr<backend::Prepared>> prepared(tables.size());
        try {
            each_shard([&](std::size_t shard) {
                prepared[shard] = tables[shard]->prepare(change_of(shard));
            });
        } catch (...) {
            cancel(std::move(prepared));
            throw;
        }
        finish_shards([&](std::size_t shard) {
            tables[shard]->finish(std::move(prepared[shard]));
            after(shard);
        });
    }
    void cancel(std::vector<std::unique_ptr<backend::Prepared>> prepared) noexcept;

    Admitted insert(map::KeysAndValues batch, std::vector<Reduce> const& reduce,
                    Tensor const& scores);
    Evicted insert(backend::Routed const& routed, sharded::RowOrder const& order,
                   std::vector<Element> const& columns,
                   std::function<table::BoundedBatch(std::size_t)> const& part,
                   sharded::Grouped& answers);
    /// Finds the keys and calls `gather` with each shard's table and what to read from it, on
    /// several threads at once. Returns which rows were found: bool [N].
    template <class GatherShard>
    Tensor gather_found(map::CheckedBatch const& keys, GatherShard&& gather) const {
        auto const routed = route(keys);
        sharded::GroupedColumn const rows(*routed, placement(keys), keys, key.bytes());
        sharded::RowOrder const order(*routed);
        sharded::Grouped answers(*routed, placement(keys));
        map::Reading guard = reading();
        each_shard([&](std::size_t shard) {
            backend::Answers const found = answers.of(shard);
            tables[shard]->find(part(rows, *routed, shard), found);
            gather(*tables[shard],
                   backend::Gather{found.indices, routed->rows(shard), {}, order.of(shard)});
        });
        guard.unlock();
        return answers.mask(Device{});
    }
    ShardedLocated find(map::CheckedBatch const& keys) const;
    // The same for shards on devices.
    ShardedLocated find_on_devices(map::CheckedBatch const& keys) const;
    ValuesAndMask get_on_devices(map::CheckedBatch const& keys,
                                 std::vector<Tensor> const& defaults) const;
    void require_found(sharded::GroupedColumn const& keys, backend::Routed const& routed,
                       sharded::Grouped& answers) const;
    /// Makes the changes that change_of(keys, values, answers) returns for each shard's rows.
    template <class ChangeOf>
    ShardedLocated write(map::KeysAndValues batch, ChangeOf&& change_of) {
        batch.keys = own(std::move(batch.keys));
        auto const routed = route(batch.keys);
        return write(*routed, std::move(batch), change_of);
    }
    /// The same for rows that were routed already.
    template <class ChangeOf>
    ShardedLocated write(backend::Routed const& routed, map::KeysAndValues batch,
                         ChangeOf&& change_of) {
        sharded::Placement const at = placement(batch.keys);
        sharded::GroupedValues columns(routed, at, batch.values.size());
        sharded::Grouped answers = sharded::Grouped::with_indices(routed, at);
        map::Writing guard = writing();
        std::vector<backend::Bytes> addresses = map::detach_from(*this, batch);
        sharded::GroupedColumn const keys(routed, at, batch.keys, key.bytes());
        columns.take(batch.values, std::move(addresses), values);
        change([&](std::size_t shard) -> backend::Change {
            return change_of(part(keys, routed, shard), columns.of(shard), answers.of(shard));
        });
        guard.unlock();
        map::mark_read(batch);
        return answers.located(batch.keys.home);
    }
};

}  // namespace tensorhash
