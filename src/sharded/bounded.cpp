// ShardedMap with a bound: batches that may evict, on every shard by its own share, on all or on none.
#include <optional>
#include <string>

#include "map/get.hpp"
#include "sharded/grouped.hpp"
#include "sharded/impl.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash {

using sharded::Grouped;
using sharded::GroupedColumn;
using sharded::Routed;
using sharded::RowOrder;
using table::Admission;
using table::Batch;
using table::Reading;
using table::Writing;

namespace {

/// The i-th shard's share.
std::uint64_t share(std::uint64_t capacity, std::size_t shards, std::size_t i) {
    return capacity / shards + (i < capacity % shards ? 1 : 0);
}

/// Who leaves which shard, in the order of the caller's rows: a row makes one leave at most.
class Leavers {
public:
    Leavers(Routed const& routed, std::vector<std::optional<Admission>> const& admissions)
        : places_(admissions.size()) {
        std::vector<std::uint32_t> leaver(routed.rows());  // of each row, by its shard's count
        std::vector<std::uint32_t> shard_of(routed.rows());
        routed.for_rows([&](std::size_t row, std::size_t shard, std::size_t place) {
            auto const& plan = admissions[shard]->plan;
            leaver[row] = plan ? plan->leaves[place - routed.begin(shard)] : table::kNone;
            shard_of[row] = static_cast<std::uint32_t>(shard);
        });
        for (std::size_t shard = 0; shard < admissions.size(); ++shard) {
            places_[shard].resize(admissions[shard]->leaving());
        }
        for (std::size_t row = 0; row < leaver.size(); ++row) {
            if (leaver[row] != table::kNone) {
                places_[shard_of[row]][leaver[row]] = count_++;
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

ShardedMap::ShardedMap(Bound bound, Element key, std::vector<Element> values,
                       std::vector<Device> devices, ShardPolicy policy,
                       std::optional<std::uint64_t> seed) {
    sharded::check_devices(devices);
    sharded::check_elements(key, values, policy, devices.size());
    std::size_t const shards = devices.size();
    std::int64_t const most = static_cast<std::int64_t>(table::kMaxEntries * shards);
    std::int64_t const rows = bound.max_capacity.rows;
    if (rows < static_cast<std::int64_t>(shards) || rows > most) {
        throw ValueError("max_capacity: expected " + std::to_string(shards) + " to " +
                         std::to_string(most) + " entries, one or more for each shard, got " +
                         std::to_string(rows));
    }
    std::vector<table::Table> tables;
    for (std::size_t i = 0; i < shards; ++i) {
        tables.emplace_back(key, table::with_hidden(values),
                            share(static_cast<std::uint64_t>(rows), shards, i),
                            sharded::seed_of_shard(seed, i));
    }
    std::vector<table::Ledger> ledgers(shards, table::Ledger(bound.eviction));
    impl_ = std::make_unique<Impl>(std::move(key), std::move(values), std::move(devices),
                                   std::move(policy), std::move(tables), std::move(ledgers));
}

void ShardedMap::Impl::require_unbounded(char const* verb) const {
    if (is_bounded()) {
        throw ValueError(std::string(verb) +
                         ": not for a bounded table, where what adds or overwrites keys returns "
                         "what it evicts");
    }
}

void ShardedMap::Impl::require_bounded(char const* verb) const {
    if (!is_bounded()) {
        throw ValueError(std::string(verb) +
                         ": this table is not bounded; one that is was made with a max_capacity");
    }
}

Admitted ShardedMap::admit(Tensor const& keys, std::vector<Tensor> const& values,
                           std::vector<Reduce> const& reduce, Tensor const& scores) {
    impl_->require_bounded("admit");
    Batch batch = impl_->own(table::check_batch(keys, impl_->key, "keys"));
    std::vector<Batch> columns = table::check_values(values, impl_->values, batch.rows);
    std::vector<Reduce> reduces = table::check_reduce(reduce, impl_->values.size());
    reduces.insert(reduces.end(), 2, Reduce::Last);
    std::optional<Batch> const given =
        table::check_scores(scores, impl_->ledgers[0].eviction, batch.rows, true);
    std::vector<Element> const elements = impl_->elements();
    Routed const routed = impl_->route(batch);
    RowOrder const order(routed);
    Grouped answers = Grouped::with_indices(routed);
    std::vector<std::optional<Admission>> admissions(shards());
    Evicted evicted;

    Writing guard(impl_->lock);
    impl_->detach(batch);
    std::vector<table::Bytes> from;
    for (Batch& column : columns) {
        impl_->detach(column);
        from.push_back(column.data());
    }
    table::UsedRows const used(impl_->ledgers[0], batch.rows, given ? &*given : nullptr);
    from.push_back(used.scores());
    from.push_back(used.uses());
    GroupedColumn const rows(routed, batch, impl_->key.bytes());
    auto const part = [&](std::size_t shard) -> table::Candidates {
        return {impl_->key,
                elements,
                rows.from(routed.begin(shard)),
                routed.rows(shard),
                from,
                reduces,
                used,
                order.of(shard)};
    };
    std::optional<Leavers> leavers;
    try {
        impl_->each_shard([&](std::size_t shard) {
            admissions[shard] =
                table::prepare_admit(impl_->bounded(shard), part(shard), answers.of(shard));
        });
        leavers.emplace(routed, admissions);
        evicted = table::make_evicted(impl_->key, elements, leavers->count());
    } catch (...) {
        for (std::size_t shard = 0; shard < shards(); ++shard) {
            if (admissions[shard]) {
                table::cancel_admit(impl_->bounded(shard), *admissions[shard]);
            }
        }
        throw;
    }
    impl_->finish_shards([&](std::size_t shard) {
        table::finish_admit(impl_->bounded(shard), part(shard), std::move(*admissions[shard]),
                            answers.of(shard), evicted, leavers->places(shard));
    });
    impl_->end_batch(batch.rows);
    guard.unlock();
    Located located = answers.located();
    return {std::move(located.indices), std::move(located.mask), std::move(evicted)};
}

Admitted ShardedMap::admit(Tensor const& keys, Tensor const& scores) {
    Batch const batch = table::check_batch(keys, impl_->key, "keys");
    return admit(batch.tensor, table::zero_rows(impl_->values, batch.rows), {Reduce::First},
                 scores);
}

std::vector<Tensor> ShardedMap::get_and_touch(Tensor const& keys,
                                              std::vector<Tensor> const& defaults,
                                              Tensor const& scores) {
    impl_->require_bounded("get_and_touch");
    Batch const batch = table::check_batch(keys, impl_->key, "keys");
    std::optional<Batch> const given =
        table::check_scores(scores, impl_->ledgers[0].eviction, batch.rows, false);
    table::Values values(impl_->values, defaults, batch.rows);
    Routed const routed = impl_->route(batch);
    RowOrder const order(routed);
    GroupedColumn const rows(routed, batch, impl_->key.bytes());
    Grouped answers(routed);
    Writing guard(impl_->lock);
    table::UsedRows const used(impl_->ledgers[0], batch.rows, given ? &*given : nullptr);
    impl_->finish_shards([&](std::size_t shard) {
        table::Answers const found = answers.of(shard);
        table::Table const& here = impl_->tables[shard];
        here.find(rows.from(routed.begin(shard)), routed.rows(shard), found);
        table::touch(impl_->bounded(shard), used, found.numbers, routed.rows(shard),
                     given.has_value(), order.of(shard));
        values.gather_part(here, found.numbers, order.of(shard), routed.rows(shard));
    });
    impl_->end_batch(batch.rows);
    guard.unlock();
    return values.take();
}

Tensor ShardedMap::scores() const {
    impl_->require_bounded("scores");
    Reading const guard(impl_->lock);
    std::vector<Tensor> parts(shards());
    impl_->each_shard([&](std::size_t shard) {
        table::Table const& here = impl_->tables[shard];
        parts[shard] = table::gathered(here.values()[impl_->values.size()], table::kScore,
                                       table::listed(here));
    });
    return sharded::joined(parts, table::kScore);
}

std::uint64_t ShardedMap::clock() const {
    impl_->require_bounded("clock");
    Reading const guard(impl_->lock);
    return impl_->ledgers[0].clock;
}

std::optional<Bound> ShardedMap::bound() const {
    if (!impl_->is_bounded()) {
        return std::nullopt;
    }
    return Bound{Capacity{capacity()}, impl_->ledgers[0].eviction};
}

}  // namespace tensorhash
