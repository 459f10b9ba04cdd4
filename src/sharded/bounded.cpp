// Bounded ShardedHashMap: each shard evicts within its own share of the capacity. A batch changes
// all shards or none.
#include <optional>
#include <string>

#include "map/get.hpp"
#include "sharded/impl.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash {

using backend::Routed;
using map::CheckedBatch;
using map::Reading;
using map::Writing;
using sharded::Grouped;
using sharded::GroupedColumn;
using sharded::RowOrder;
using table::BoundedInsertion;

namespace {

/// The capacity of the i-th shard.
std::uint64_t share(std::uint64_t capacity, std::size_t shards, std::size_t i) {
    return capacity / shards + (i < capacity % shards ? 1 : 0);
}

/// The result row of every evicted entry, in the order of the caller's rows. A row evicts at most
/// one entry.
class EvictedPlaces {
public:
    EvictedPlaces(Routed const& routed, RowOrder const& order,
                  std::vector<std::optional<BoundedInsertion>> const& insertions)
        : places_(insertions.size()) {
        // For each of the caller's rows: which of its shard's evictions it causes.
        std::vector<std::uint32_t> eviction(routed.rows(), table::kNoEviction);
        std::vector<std::uint32_t> shard_of(routed.rows());
        for (std::size_t shard = 0; shard < insertions.size(); ++shard) {
            places_[shard].resize(insertions[shard]->leaving());
            auto const& plan = insertions[shard]->plan;
            std::uint32_t const* const rows = order.of(shard);
            for (std::size_t i = 0; plan && i < routed.rows(shard); ++i) {
                std::size_t const row = rows == nullptr ? i : rows[i];
                eviction[row] = plan->leaves[i];
                shard_of[row] = static_cast<std::uint32_t>(shard);
            }
        }
        for (std::size_t row = 0; row < eviction.size(); ++row) {
            if (eviction[row] != table::kNoEviction) {
                places_[shard_of[row]][eviction[row]] = count_++;
            }
        }
    }
    std::size_t count() const noexcept { return count_; }
    std::uint32_t const* places(std::size_t shard) const noexcept { return places_[shard].data(); }

private:
    std::vector<std::vector<std::uint32_t>> places_;
    std::uint32_t count_ = 0;
};

}  // namespace

ShardedHashMap::ShardedHashMap(Bound bound, Element key, std::vector<Element> values,
                               std::vector<Device> devices, ShardPolicy policy,
                               std::optional<std::uint64_t> seed) {
    sharded::check_devices(devices);
    if (!devices[0].is_cpu()) {
        require_cpu(devices[0], "devices", "bounded tables");
    }
    sharded::check_elements(key, values, policy, devices);
    std::size_t const shards = devices.size();
    std::uint64_t const rows = map::check_capacity(bound.max_capacity, "max_capacity", shards, 1);
    std::vector<Element> const columns = table::with_hidden(values);
    sharded::Tables tables;
    for (std::size_t i = 0; i < shards; ++i) {
        tables.push_back(std::make_unique<table::CpuTable>(
            table::Table(key, columns, share(rows, shards, i), sharded::seed_of_shard(seed, i)),
            devices[i]));
    }
    std::vector<table::Ledger> ledgers(shards, table::Ledger(bound.eviction));
    impl_ = std::make_unique<Impl>(std::move(key), std::move(values), std::move(devices),
                                   std::move(policy), std::move(tables), std::move(ledgers));
}

void ShardedHashMap::Impl::require_unbounded(char const* verb) const {
    if (is_bounded()) {
        throw ValueError(std::string(verb) +
                         ": not available on a bounded table; the verbs that take scores (an empty "
                         "Tensor if the table evicts by last use) return what they evict");
    }
}

void ShardedHashMap::Impl::require_bounded(char const* verb) const {
    if (!is_bounded()) {
        throw ValueError(std::string(verb) +
                         ": this table is not bounded; create one with a max_capacity");
    }
}

Admitted ShardedHashMap::insert(Tensor const& keys, std::vector<Tensor> const& values,
                                Tensor const& scores) {
    impl_->require_bounded("insert with scores");
    return impl_->insert(map::check_keys_and_values(keys, impl_->key, values, impl_->values),
                         {Reduce::First}, scores);
}

Admitted ShardedHashMap::insert_or_assign(Tensor const& keys, std::vector<Tensor> const& values,
                                          Tensor const& scores) {
    impl_->require_bounded("insert_or_assign with scores");
    return impl_->insert(map::check_keys_and_values(keys, impl_->key, values, impl_->values),
                         {Reduce::Last}, scores);
}

Admitted ShardedHashMap::accumulate(Tensor const& keys, std::vector<Tensor> const& values,
                                    std::vector<Reduce> const& reduce, Tensor const& scores) {
    impl_->require_bounded("accumulate with scores");
    map::KeysAndValues batch = map::check_keys_and_values(keys, impl_->key, values, impl_->values);
    std::vector<Reduce> const plain = map::resolve_reduce(reduce, impl_->values, batch);
    return impl_->insert(std::move(batch), plain, scores);
}

Admitted ShardedHashMap::activate(Tensor const& keys, Tensor const& scores) {
    impl_->require_bounded("activate with scores");
    return impl_->insert(map::check_keys_and_zeros(keys, impl_->key, impl_->values),
                         {Reduce::First}, scores);
}

/// The verbs that add keys, as in BoundedHashMap::Impl::insert.
Admitted ShardedHashMap::Impl::insert(map::KeysAndValues batch, std::vector<Reduce> const& reduce,
                                      Tensor const& scores) {
    std::size_t const count = batch.keys.rows;
    std::vector<Reduce> const reduces = table::with_hidden(reduce, values.size());
    std::optional<CheckedBatch> const given =
        map::check_scores(scores, ledgers[0].eviction, count, true);
    batch.keys = own(std::move(batch.keys));
    std::vector<Element> const columns = elements();
    auto const routed = route(batch.keys);
    RowOrder const order(*routed);
    Grouped answers = Grouped::with_indices(*routed, placement(batch.keys));

    Writing guard = writing();
    std::vector<table::Bytes> from = map::detach_from(*this, batch);
    table::UsedRows const used(ledgers[0], count, given ? given->data() : nullptr);
    from.push_back(used.scores());
    from.push_back(used.uses());
    GroupedColumn const rows(*routed, placement(batch.keys), batch.keys, key.bytes());
    auto const part = [&](std::size_t shard) -> table::BoundedBatch {
        return {key,  columns, rows.of(shard), routed->rows(shard),
                from, reduces, used,           order.of(shard)};
    };
    Evicted evicted = insert(*routed, order, columns, part, answers);
    end_batch(count);
    guard.unlock();
    ShardedLocated located = answers.located(Device{});
    return {std::move(located.indices), std::move(located.mask), std::move(evicted)};
}

/// Inserts part(shard) into every shard, or into none; returns the evicted entries.
Evicted ShardedHashMap::Impl::insert(Routed const& routed, RowOrder const& order,
                                     std::vector<Element> const& columns,
                                     std::function<table::BoundedBatch(std::size_t)> const& part,
                                     Grouped& answers) {
    std::vector<std::optional<BoundedInsertion>> insertions(tables.size());
    std::optional<EvictedPlaces> evicted_places;
    Evicted evicted;
    try {
        each_shard([&](std::size_t shard) {
            insertions[shard] =
                table::prepare_insert(bounded(shard), part(shard), answers.of(shard));
        });
        evicted_places.emplace(routed, order, insertions);
        evicted = table::make_evicted(key, columns, evicted_places->count());
    } catch (...) {
        for (std::size_t shard = 0; shard < tables.size(); ++shard) {
            if (insertions[shard]) {
                table::cancel(bounded(shard), *insertions[shard]);
            }
        }
        throw;
    }
    finish_shards([&](std::size_t shard) {
        table::finish_insert(bounded(shard), part(shard), std::move(*insertions[shard]),
                             answers.of(shard), evicted, evicted_places->places(shard));
    });
    return evicted;
}

std::vector<Tensor> ShardedHashMap::get_and_touch(Tensor const& keys,
                                                  std::vector<Tensor> const& defaults,
                                                  Tensor const& scores) {
    impl_->require_bounded("get_and_touch");
    CheckedBatch const batch = map::check_batch(keys, impl_->key, "keys");
    std::optional<CheckedBatch> const given =
        map::check_scores(scores, impl_->ledgers[0].eviction, batch.rows, false);
    map::Values values(impl_->values, defaults, batch.rows);
    auto const routed = impl_->route(batch);
    RowOrder const order(*routed);
    GroupedColumn const rows(*routed, impl_->placement(batch), batch, impl_->key.bytes());
    Grouped answers(*routed, impl_->placement(batch));
    Writing guard = impl_->writing();
    table::UsedRows const used(impl_->ledgers[0], batch.rows, given ? given->data() : nullptr);
    impl_->finish_shards([&](std::size_t shard) {
        table::Answers const found = answers.of(shard);
        backend::TableBackend const& here = *impl_->tables[shard];
        here.find(impl_->part(rows, *routed, shard), found);
        table::touch(impl_->bounded(shard), used, found.indices, routed->rows(shard),
                     given.has_value(), order.of(shard));
        values.gather(here, {found.indices, routed->rows(shard), {}, order.of(shard)});
    });
    impl_->end_batch(batch.rows);
    guard.unlock();
    return values.take();
}

Tensor ShardedHashMap::scores() const {
    impl_->require_bounded("scores");
    Reading const guard = impl_->reading();
    std::vector<Tensor> parts(shards());
    impl_->each_shard([&](std::size_t shard) {
        parts[shard] = map::scores_of(*impl_->tables[shard], impl_->values.size());
    });
    return sharded::joined(parts, table::kScore);
}

std::uint64_t ShardedHashMap::clock() const {
    impl_->require_bounded("clock");
    Reading const guard = impl_->reading();
    return impl_->ledgers[0].clock;
}

std::optional<Bound> ShardedHashMap::bound() const {
    if (!impl_->is_bounded()) {
        return std::nullopt;
    }
    return Bound{Capacity{capacity()}, impl_->ledgers[0].eviction};
}

}  // namespace tensorhash
