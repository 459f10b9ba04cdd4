// ShardedHashMap::update: applies an optimizer's steps or the caller's function on all shards.
#include <optional>
#include <utility>

#include "map/update_arguments.hpp"
#include "sharded/impl.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash {

using backend::Answers;
using backend::Routed;
using map::CheckedBatch;
using map::Writing;
using sharded::Grouped;
using sharded::GroupedColumn;

namespace {

backend::Lookup lookup_for(Missing missing) {
    switch (missing) {
        case Missing::Insert:
            return backend::Lookup::Insert;
        case Missing::Error:
            return backend::Lookup::Done;  // require_found() has looked up the keys
        default:
            return backend::Lookup::Find;
    }
}

/// The keys, gradients and initial weights of a batch, grouped by shard.
struct GroupedUpdate {
    GroupedUpdate(Routed const& routed, sharded::Placement const& at, Element const& key,
                  CheckedBatch const& key_rows, Element const& weight,
                  CheckedBatch const& gradient_rows,
                  std::optional<map::FillRows> const& initial_rows)
        : weights(weight), keys(routed, at, key_rows, key.bytes()),
          gradients(routed, at, gradient_rows, weight.bytes()) {
        if (initial_rows) {
            initial.emplace(routed, at, *initial_rows, weight.bytes());
        }
    }
    backend::Update change(backend::KeyRows part, std::size_t shard, Optimizer const& optimizer,
                           UpdateOptions const& options, Answers out) const {
        return {part,
                &weights,
                gradients.of(shard),
                &optimizer,
                options.duplicates,
                lookup_for(options.missing),
                initial ? initial->of(shard) : backend::DefaultRows{},
                out};
    }

    Element const& weights;
    GroupedColumn keys;
    GroupedColumn gradients;
    std::optional<sharded::GroupedFill> initial;
};

/// Calls visit(batch) for the arrays of one call.
template <class Visit>
void for_each_batch(CheckedBatch& keys, CheckedBatch& gradients,
                    std::optional<map::FillRows>& initial, Visit const& visit) {
    visit(keys);
    visit(gradients);
    if (initial) {
        visit(initial->batch);
    }
}

}  // namespace

ShardedLocated ShardedHashMap::update(Tensor const& keys, Tensor const& gradients,
                                      Optimizer const& optimizer, UpdateOptions const& options) {
    map::check_optimizer(optimizer, impl_->values);
    bool const inserts = options.missing == Missing::Insert;
    if (inserts && impl_->is_bounded()) {
        map::fail_insert_in_update();
    }
    Element const& weights = impl_->values[0];
    CheckedBatch batch = impl_->check_keys(keys);
    Device const device = batch.tensor.device();
    if (inserts) {
        batch = impl_->own(std::move(batch));
    }
    CheckedBatch gradient_batch = map::check_gradients(gradients, weights, batch.rows, device);
    std::optional<map::FillRows> initial =
        map::check_initial(options, impl_->values, batch.rows, device);
    auto const routed = impl_->route(batch);
    sharded::Placement const at = impl_->placement(batch);
    Grouped answers = Grouped::with_indices(*routed, at);

    Writing guard = impl_->writing();
    for_each_batch(batch, gradient_batch, initial,
                   [&](CheckedBatch& each) { map::detach_from(*impl_, each); });
    std::optional<sharded::RowOrder> order;
    std::optional<table::UsedRows> used;
    if (impl_->is_bounded()) {
        order.emplace(*routed);
        used.emplace(impl_->ledgers[0], batch.rows, nullptr);
    }
    GroupedUpdate const rows(*routed, at, impl_->key, batch, weights, gradient_batch, initial);
    if (options.missing == Missing::Error) {
        impl_->require_found(rows.keys, *routed, answers);
    }
    impl_->change(
        [&](std::size_t shard) -> backend::Change {
            backend::KeyRows const part = impl_->part(rows.keys, *routed, shard);
            return rows.change(part, shard, optimizer, options, answers.of(shard));
        },
        [&](std::size_t shard) {
            if (used) {
                table::touch(impl_->bounded(shard), *used, answers.of(shard).indices,
                             routed->rows(shard), false, order->of(shard));
            }
        });
    impl_->end_batch(batch.rows);
    guard.unlock();
    for_each_batch(batch, gradient_batch, initial,
                   [](CheckedBatch& each) { map::mark_read(each); });
    return answers.located(batch.home);
}

/// Throws KeyError unless all keys are present. The message names the caller's row.
void ShardedHashMap::Impl::require_found(GroupedColumn const& keys, Routed const& routed,
                                         Grouped& answers) const {
    each_shard([&](std::size_t shard) {
        tables[shard]->find(part(keys, routed, shard), answers.of(shard));
    });
    Tensor const mask = answers.mask(Device{});
    map::require_found(static_cast<unsigned char const*>(mask.data()), routed.rows(),
                       is_bounded() ? "skip" : "skip or insert");
}

/// The function reads and writes host memory, so all shards must be on the CPU.
Tensor ShardedHashMap::update(Tensor const& keys, RowChange const& change) {
    impl_->require_unbounded("update by a function");
    impl_->require_cpu("update by a function");
    CheckedBatch const batch = impl_->check_keys(keys);
    auto const routed = impl_->route(batch);
    GroupedColumn const rows(*routed, impl_->placement(batch), batch, impl_->key.bytes());
    sharded::RowOrder const order(*routed);
    Grouped answers(*routed, impl_->placement(batch));
    std::vector<table::Remembered> before(shards());
    auto const table_of = [&](std::size_t shard) -> table::Table& {
        return table::on_cpu(*impl_->tables[shard]);
    };
    Writing guard = impl_->writing();
    impl_->each_shard([&](std::size_t shard) {
        impl_->tables[shard]->find(impl_->part(rows, *routed, shard), answers.of(shard));
        before[shard] = table_of(shard).remember(answers.of(shard), routed->rows(shard));
    });
    try {
        impl_->each_shard([&](std::size_t shard) {
            std::uint32_t const* const row = order.of(shard);
            table_of(shard).visit_found(
                answers.of(shard), routed->rows(shard),
                [&](std::size_t i, void* const* at) { change(row == nullptr ? i : row[i], at); });
        });
    } catch (...) {
        impl_->finish_shards([&](std::size_t shard) {
            table_of(shard).put_back(before[shard], answers.of(shard), routed->rows(shard));
        });
        throw;
    }
    guard.unlock();
    return answers.mask(Device{});
}

}  // namespace tensorhash
