// What a ShardedMap is made of, for the files that implement it.
#pragma once

#include <exception>
#include <optional>
#include <vector>

#include "map/results.hpp"
#include "runtime/lock.hpp"
#include "runtime/parallel.hpp"
#include "sharded/route.hpp"
#include "table/bounded_batch.hpp"
#include "table/table.hpp"
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

/// The tensors of all shards, one behind the other.
Tensor joined(std::vector<Tensor> const& parts, Element const& element);

}  // namespace sharded

struct ShardedMap::Impl {
    Impl(Element key_element, std::vector<Element> value_elements, std::vector<Device> on,
         ShardPolicy rule, std::vector<table::Table> shards, std::vector<table::Ledger> books = {});

    Element const key;
    std::vector<Element> const values;
    std::vector<Device> const devices;
    std::vector<int> pools;  // the devices' numbers
    ShardPolicy const policy;
    std::vector<table::Table> tables;
    std::vector<table::Ledger> ledgers;  // one per shard if the table is bounded, else none
    // One lock for all shards: a batch touches them together, and a reader sees all of a batch or nothing.
    mutable runtime::ReadWriteLock lock;

    Tensor shards_of(table::Batch const& keys) const {
        return sharded::shards_of(keys, key, policy, tables.size());
    }
    /// One shard has every key: nobody is asked.
    sharded::Routed route(table::Batch const& keys) const {
        return tables.size() == 1 ? sharded::Routed(keys.rows)
                                  : sharded::Routed(keys, key, policy, tables.size());
    }
    /// A batch that lies in a shard's own memory is copied first, as HashMap does.
    void detach(table::Batch& batch) const {
        for (table::Table const& table : tables) {
            table::detach_from(table, batch);
        }
    }
    /// A copy of the caller's keys if there are several shards: the policy and the shard must see
    /// the same ones. A single table makes its own.
    table::Batch own(table::Batch batch) const {
        if (tables.size() > 1) {
            batch.tensor = batch.tensor.clone();
            if (key.dtype == Dtype::Bool) {  // bytes were 0 or 1 when they were checked
                table::make_true_bools(static_cast<unsigned char*>(batch.tensor.data()),
                                       batch.tensor.bytes());
            }
        }
        return batch;
    }
    table::KeySource key_source() const noexcept {
        return tables.size() > 1 ? table::KeySource::Private : table::KeySource::Caller;
    }
    void check_shard(std::size_t shard) const;

    bool is_bounded() const noexcept { return !ledgers.empty(); }
    table::BoundedState bounded(std::size_t shard) noexcept {
        return {tables[shard], ledgers[shard]};
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

    /// each_shard(), after whose failure no claim of `adding` is left.
    template <class Work>
    void prepare_or_cancel(std::vector<std::optional<table::Adding>>& adding, Work&& work) {
        try {
            each_shard(work);
        } catch (...) {
            for (std::size_t shard = 0; shard < adding.size(); ++shard) {
                if (adding[shard]) {
                    tables[shard].cancel(*adding[shard]);
                }
            }
            throw;
        }
    }

    Located find(table::Batch const& keys) const;
    /// Without `reduce` the new keys get zeros.
    Located add(sharded::Routed const& routed, table::Batch keys, std::vector<table::Batch> columns,
                std::vector<Reduce> const* reduce);
};

}  // namespace tensorhash
