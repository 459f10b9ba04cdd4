// What a ShardedMap is made of, for the files that implement it.
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
#include "runtime/lock.hpp"
#include "runtime/parallel.hpp"
#include "sharded/grouped.hpp"
#include "sharded/route.hpp"
#include "table/bounded_batch.hpp"
#include "table/cpu_table.hpp"
#include "tensor/bools.hpp"
#include "tensorhash/sharded/sharded_map.hpp"

namespace tensorhash {
namespace sharded {

/// The most bytes of a policy's name.
inline constexpr std::size_t kMaxNameBytes = 256;

/// Throws unless there is at least one device, all are usable by shards, and none comes twice.
void check_devices(std::vector<Device> const& devices);

/// Throws unless keys and values are what tables hold, and the policy takes such keys.
void check_elements(Element const& key, std::vector<Element> const& values,
                    ShardPolicy const& policy, std::size_t shards);

/// Rows for one of so many shards, when `capacity` keys fall on them at random.
std::uint64_t capacity_of_shard(Capacity capacity, std::size_t shards, char const* argument);

/// The seed of one shard's table, if the caller fixed the seed of all.
inline std::optional<std::uint64_t> seed_of_shard(std::optional<std::uint64_t> seed,
                                                  std::size_t shard) {
    return seed ? std::optional(*seed + shard) : std::nullopt;
}

using Tables = std::vector<std::unique_ptr<backend::TableBackend>>;

/// The tensors of all shards, one behind the other.
Tensor joined(std::vector<Tensor> const& parts, Element const& element);

}  // namespace sharded

struct ShardedMap::Impl {
    Impl(Element key_element, std::vector<Element> value_elements, std::vector<Device> on,
         ShardPolicy rule, sharded::Tables shards, std::vector<table::Ledger> books = {});

    Element const key;
    std::vector<Element> const values;
    std::vector<Device> const devices;
    std::vector<int> pools;  // the devices' numbers
    ShardPolicy const policy;
    sharded::Tables tables;
    std::vector<table::Ledger> ledgers;  // one per shard if the table is bounded, else none
    // One lock for all shards: a batch touches them together, and a reader sees all of a batch or nothing.
    mutable runtime::ReadWriteLock lock;

    Tensor shards_of(map::Batch const& keys) const {
        return sharded::shards_of(keys, key, policy, tables.size());
    }
    /// Groups the rows by shard. Only a policy that is not our own is asked, and not for one shard.
    std::unique_ptr<backend::Routed> route(map::Batch const& keys) const;
    std::unique_ptr<backend::Routed> route(map::Batch const& keys, Tensor shard_of_row) const;
    /// A batch that lies in a shard's own memory is copied first, as HashMap does.
    bool overlaps(void const* data, std::size_t bytes) const noexcept;
    /// A copy of the caller's keys if there are several shards: the policy and the shard must see
    /// the same ones. A single table makes its own.
    map::Batch own(map::Batch batch) const;
    /// A shard's part of grouped keys.
    backend::KeyRows part(sharded::GroupedColumn const& keys, backend::Routed const& routed,
                          std::size_t shard) const noexcept {
        return {keys.from(routed.begin(shard)), routed.rows(shard),
                tables.size() > 1 ? backend::KeySource::Private : backend::KeySource::Caller};
    }
    void check_shard(std::size_t shard) const;

    bool is_bounded() const noexcept { return !ledgers.empty(); }
    /// Bounded shards are on the CPU.
    table::BoundedState bounded(std::size_t shard) noexcept {
        return {table::on_cpu(*tables[shard]), ledgers[shard]};
    }
    /// The shards' columns: the caller's, and two more if it is bounded.
    std::vector<Element> elements() const {
        return is_bounded() ? table::with_hidden(values) : values;
    }
    /// Throws ValueError, naming the verb, if the table is bounded or if it is not.
    void require_unbounded(char const* verb) const;
    void require_bounded(char const* verb) const;
    /// A batch of so many rows, on whatever shards, is over. Does nothing if the table is not bounded.
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

    /// work(shard) on every shard's own threads, all at once. The lowest shard's exception is rethrown after all ended.
    template <class Work>
    void each_shard(Work&& work) const {
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
    /// The same for work that cannot fail; needs no memory, so that a step begun on all shards is ended on all.
    template <class Work>
    void finish_shards(Work&& work) const noexcept {
        runtime::run_on_devices(pools, [&](std::size_t shard) { work(shard); });
    }

    /// Makes the change that change_of(shard) describes on every shard, or on none.
    template <class ChangeOf>
    void change(ChangeOf&& change_of) {
        change(change_of, [](std::size_t) {});
    }
    /// The same with more work that cannot fail, after(shard), for each shard.
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

    Evicted admit(backend::Routed const& routed, sharded::RowOrder const& order,
                  std::vector<Element> const& elements,
                  std::function<table::Candidates(std::size_t)> const& part,
                  sharded::Grouped& answers);
    Located find(map::Batch const& keys) const;
    void require_found(sharded::GroupedColumn const& keys, backend::Routed const& routed,
                       sharded::Grouped& answers) const;
    /// Calls change_of(keys of the shard, its values, its answers) for each shard and makes the
    /// changes.
    template <class ChangeOf>
    Located write(backend::Routed const& routed, map::KeysAndValues batch, ChangeOf&& change_of) {
        std::optional<sharded::RowOrder> order;
        if (!batch.values.empty()) {
            order.emplace(routed);
        }
        sharded::Grouped answers = sharded::Grouped::with_indices(routed);
        map::Writing guard(lock);
        std::vector<backend::Bytes> const columns = map::detach_from(*this, batch);
        sharded::GroupedColumn const keys(routed, batch.keys, key.bytes());
        change([&](std::size_t shard) -> backend::Change {
            backend::ValueRows const rows{columns, order ? order->of(shard) : nullptr};
            return change_of(part(keys, routed, shard), rows, answers.of(shard));
        });
        guard.unlock();
        return answers.located();
    }
};

}  // namespace tensorhash
