// Steps on the values of keys in all shards: an optimizer's, or a function of the caller's.
#include "map/update.hpp"

#include <algorithm>
#include <optional>

#include "sharded/grouped.hpp"
#include "sharded/impl.hpp"
#include "table/steps.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash {

using sharded::Grouped;
using sharded::GroupedColumn;
using sharded::Routed;
using table::Answers;
using table::Batch;
using table::Writing;

namespace {

/// A shard's part of a grouped column, as a batch.
Batch part_of(GroupedColumn const& column, Routed const& routed, std::size_t shard,
              Element const& element) {
    std::size_t const rows = routed.rows(shard);
    return {Tensor::borrow(static_cast<void const*>(column.from(routed.begin(shard))),
                           table::with_rows(rows, element.shape), element.dtype),
            rows};
}

/// What each shard has to do: its keys, its gradients, and what its new keys begin with.
struct Parts {
    Parts(Routed const& routed, std::size_t shards, Element const& key, Batch const& key_rows,
          Element const& weights, Batch const& gradient_rows,
          std::optional<table::Fill> const& initial_rows)
        : grouped_keys(routed, key_rows, key.bytes()),
          grouped_gradients(routed, gradient_rows, weights.bytes()), initial(shards) {
        bool const per_row = initial_rows && initial_rows->step != 0;
        if (per_row) {
            grouped_initial.emplace(routed, initial_rows->batch, weights.bytes());
        }
        for (std::size_t shard = 0; shard < shards; ++shard) {
            keys.push_back(part_of(grouped_keys, routed, shard, key));
            gradients.push_back(part_of(grouped_gradients, routed, shard, weights));
            initial[shard] = initial_rows;
            if (per_row) {
                initial[shard]->batch = part_of(*grouped_initial, routed, shard, weights);
            }
        }
    }

    GroupedColumn grouped_keys;
    GroupedColumn grouped_gradients;
    std::optional<GroupedColumn> grouped_initial;
    std::vector<Batch> keys;
    std::vector<Batch> gradients;
    std::vector<std::optional<table::Fill>> initial;
};

}  // namespace

Located ShardedMap::update(Tensor const& keys, Tensor const& gradients, Optimizer const& optimizer,
                           UpdateOptions const& options) {
    RowStep const step = table::make_step(optimizer, impl_->values);
    bool const inserts = options.missing == Missing::Insert;
    if (inserts && impl_->is_bounded()) {
        table::fail_insert_in_update();
    }
    Element const& weights = impl_->values[0];
    Batch batch = table::check_batch(keys, impl_->key, "keys");
    if (inserts) {
        batch = impl_->own(std::move(batch));
    }
    Batch slopes = table::check_gradients(gradients, weights, batch.rows);
    std::optional<table::Fill> initial = table::check_initial(options, impl_->values, batch.rows);
    Routed const routed = impl_->route(batch);
    Grouped answers = Grouped::with_indices(routed);
    std::vector<std::optional<table::Steps>> ready(shards());
    std::vector<std::optional<table::Adding>> adding(shards());

    Writing guard(impl_->lock);
    impl_->detach(batch);
    impl_->detach(slopes);
    if (initial) {
        impl_->detach(initial->batch);
    }
    std::optional<sharded::RowOrder> order;
    std::optional<table::UsedRows> used;
    if (impl_->is_bounded()) {
        order.emplace(routed);
        used.emplace(impl_->ledgers[0], batch.rows, nullptr);
    }
    Parts const parts(routed, shards(), impl_->key, batch, weights, slopes, initial);
    impl_->prepare_or_cancel(adding, [&](std::size_t shard) {
        table::Table& here = impl_->tables[shard];
        ready[shard].emplace(here, impl_->key, parts.keys[shard], weights, parts.gradients[shard],
                             options.duplicates);
        if (inserts) {
            adding[shard] = here.prepare_add(parts.keys[shard].data(), routed.rows(shard),
                                             answers.of(shard), impl_->key_source());
        } else {
            here.find(parts.keys[shard].data(), routed.rows(shard), answers.of(shard));
        }
    });
    if (options.missing == Missing::Error) {
        // In the caller's order, so that the row it names is the caller's.
        Tensor const mask = answers.mask();
        table::require_found(static_cast<unsigned char const*>(mask.data()), batch.rows,
                             impl_->is_bounded() ? "skip" : "skip or insert");
    }
    impl_->finish_shards([&](std::size_t shard) {
        table::Table& here = impl_->tables[shard];
        Answers const out = answers.of(shard);
        if (inserts) {
            here.finish_activate(std::move(*adding[shard]));
            table::settle_added(here, parts.initial[shard], routed.rows(shard), out);
        }
        ready[shard]->apply(here, out.numbers, step);
        if (used) {
            table::touch(impl_->bounded(shard), *used, out.numbers, routed.rows(shard), false,
                         order->of(shard));
        }
    });
    impl_->end_batch(batch.rows);
    guard.unlock();
    return answers.located();
}

Tensor ShardedMap::update(Tensor const& keys, RowUpdate const& change) {
    impl_->require_unbounded("update by a function");
    Batch const batch = table::check_batch(keys, impl_->key, "keys");
    Routed const routed = impl_->route(batch);
    GroupedColumn const rows(routed, batch, impl_->key.bytes());
    sharded::RowOrder const order(routed);
    Grouped answers(routed);
    std::vector<table::Remembered> before(shards());
    Writing guard(impl_->lock);
    impl_->each_shard([&](std::size_t shard) {
        table::Table& here = impl_->tables[shard];
        here.find(rows.from(routed.begin(shard)), routed.rows(shard), answers.of(shard));
        before[shard] = here.remember(answers.of(shard), routed.rows(shard));
    });
    try {
        impl_->each_shard([&](std::size_t shard) {
            std::uint32_t const* const row = order.of(shard);
            impl_->tables[shard].visit_found(
                answers.of(shard), routed.rows(shard),
                [&](std::size_t i, void* const* at) { change(row == nullptr ? i : row[i], at); });
        });
    } catch (...) {
        impl_->finish_shards([&](std::size_t shard) {
            impl_->tables[shard].put_back(before[shard], answers.of(shard), routed.rows(shard));
        });
        throw;
    }
    guard.unlock();
    return answers.mask();
}

}  // namespace tensorhash
