// BoundedHashMap: arguments, locks and results; evict.cpp plans the evictions. Score and last use
// are two value columns behind the caller's, so that clone, compact and files include them.
#include "tensorhash/bounded_map.hpp"

#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "map/bounded_impl.hpp"
#include "map/get.hpp"
#include "map/update_arguments.hpp"
#include "table/steps.hpp"
#include "table/update.hpp"
#include "tensor/allocators.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash {

using map::answers;
using map::CheckedBatch;
using map::Reading;
using map::Writing;
using table::Table;
using table::with_hidden;

BoundedHashMap::BoundedHashMap(Capacity max_capacity, Element key, std::vector<Element> values,
                               Eviction eviction, Device device,
                               std::optional<std::uint64_t> seed) {
    require_cpu(device, "device", "bounded tables");
    map::check_elements(key, values);
    std::uint64_t const rows = map::check_capacity(max_capacity, "max_capacity", 1, 1);
    Table made(key, with_hidden(values), rows, seed);
    impl_ = std::make_unique<Impl>(std::move(key), std::move(values), std::move(made),
                                   table::Ledger(eviction), device);
}

BoundedHashMap::BoundedHashMap(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
BoundedHashMap::BoundedHashMap(BoundedHashMap&&) noexcept = default;
BoundedHashMap& BoundedHashMap::operator=(BoundedHashMap&&) noexcept = default;
BoundedHashMap::~BoundedHashMap() = default;

Admitted BoundedHashMap::insert(Tensor const& keys, std::vector<Tensor> const& values,
                                Tensor const& scores) {
    return impl_->insert(map::check_keys_and_values(keys, impl_->key, values, impl_->values),
                         {Reduce::First}, scores);
}

Admitted BoundedHashMap::insert_or_assign(Tensor const& keys, std::vector<Tensor> const& values,
                                          Tensor const& scores) {
    return impl_->insert(map::check_keys_and_values(keys, impl_->key, values, impl_->values),
                         {Reduce::Last}, scores);
}

Admitted BoundedHashMap::accumulate(Tensor const& keys, std::vector<Tensor> const& values,
                                    std::vector<Reduce> const& reduce, Tensor const& scores) {
    map::KeysAndValues batch = map::check_keys_and_values(keys, impl_->key, values, impl_->values);
    std::vector<Reduce> const plain = map::resolve_reduce(reduce, impl_->values, batch);
    return impl_->insert(std::move(batch), plain, scores);
}

Admitted BoundedHashMap::activate(Tensor const& keys, Tensor const& scores) {
    return impl_->insert(map::check_keys_and_zeros(keys, impl_->key, impl_->values),
                         {Reduce::First}, scores);
}

/// The verbs that add keys. They differ in what they do with keys that are present: `reduce`.
Admitted BoundedHashMap::Impl::insert(map::KeysAndValues batch, std::vector<Reduce> const& reduce,
                                      Tensor const& scores) {
    std::size_t const rows = batch.keys.rows;
    std::optional<CheckedBatch> const given =
        map::check_scores(scores, ledger.eviction, rows, true);
    std::vector<Element> const elements = with_hidden(values);
    std::vector<Reduce> const reduces = with_hidden(reduce, values.size());
    Located located = map::make_located(rows);
    Writing const guard = writing();
    std::vector<table::Bytes> columns = map::detach_from(table, batch);
    table::UsedRows const used(ledger, rows, given ? given->data() : nullptr);
    columns.push_back(used.scores());
    columns.push_back(used.uses());
    table::BoundedBatch const all{key, elements, batch.keys.data(), rows, columns, reduces, used};
    Admitted out{located.indices, located.mask, {}};
    table::BoundedInsertion insertion = prepare_insert(state(), all, answers(located));
    try {
        out.evicted = table::make_evicted(key, elements, insertion.leaving());
    } catch (...) {
        cancel(state(), insertion);
        throw;
    }
    finish_insert(state(), all, std::move(insertion), answers(located), out.evicted);
    ledger.end_batch(rows);
    return out;
}

Located BoundedHashMap::update(Tensor const& keys, Tensor const& gradients,
                               Optimizer const& optimizer, UpdateOptions const& options) {
    map::check_optimizer(optimizer, impl_->values);
    if (options.missing == Missing::Insert) {
        map::fail_insert_in_update();
    }
    Element const& weights = impl_->values[0];
    CheckedBatch key_batch = map::check_batch(keys, impl_->key, "keys");
    CheckedBatch gradient_batch = map::check_gradients(gradients, weights, key_batch.rows);
    RowStep const step = table::make_step(optimizer, weights);
    Located located = map::make_located(key_batch.rows);
    table::Answers const out = answers(located);
    Writing const guard = impl_->writing();
    map::detach_from(impl_->table, key_batch);
    map::detach_from(impl_->table, gradient_batch);
    table::Steps steps(impl_->table, key_rows(key_batch), weights, gradient_batch.data(),
                       options.duplicates);
    table::UsedRows const used(impl_->ledger, key_batch.rows, nullptr);
    impl_->table.find(key_batch.data(), key_batch.rows, out);
    if (options.missing == Missing::Error) {
        map::require_found(out.mask, key_batch.rows, "skip");
    }
    steps.apply(impl_->table, out.indices, step);
    table::touch(impl_->state(), used, out.indices, key_batch.rows, false);
    impl_->ledger.end_batch(key_batch.rows);
    return located;
}

Located BoundedHashMap::find(Tensor const& keys) const {
    CheckedBatch const batch = map::check_batch(keys, impl_->key, "keys");
    Located located = map::make_located(batch.rows);
    Reading const guard = impl_->reading();
    impl_->table.find(batch.data(), batch.rows, answers(located));
    return located;
}

Tensor BoundedHashMap::contains(Tensor const& keys) const { return find(keys).mask; }

Tensor BoundedHashMap::erase(Tensor const& keys) {
    CheckedBatch const batch = map::check_batch(keys, impl_->key, "keys");
    Tensor mask = Tensor::empty(with_rows(batch.rows, {}), Dtype::Bool);
    Writing const guard = impl_->writing();
    impl_->table.erase(batch.data(), batch.rows, static_cast<unsigned char*>(mask.data()));
    ++impl_->ledger.clock;
    return mask;
}

Tensor BoundedHashMap::assign(Tensor const& keys, std::vector<Tensor> const& values) {
    map::KeysAndValues batch = map::check_keys_and_values(keys, impl_->key, values, impl_->values);
    Located located = map::make_located(batch.keys.rows);
    table::Answers const found = answers(located);
    std::vector<std::size_t> widths;
    for (Element const& element : impl_->values) {
        widths.push_back(element.bytes());
    }
    Writing const guard = impl_->writing();
    std::vector<table::Bytes> const columns = map::detach_from(impl_->table, batch);
    impl_->table.find(batch.keys.data(), batch.keys.rows, found);
    // The two hidden columns, score and last use, stay as they are.
    impl_->table.visit_found(found, batch.keys.rows, [&](std::size_t row, void* const* to) {
        for (std::size_t i = 0; i < widths.size(); ++i) {
            std::memcpy(to[i], columns[i] + row * widths[i], widths[i]);
        }
    });
    return located.mask;
}

std::vector<Tensor> BoundedHashMap::get(Tensor const& keys,
                                        std::vector<Tensor> const& defaults) const {
    CheckedBatch const batch = map::check_batch(keys, impl_->key, "keys");
    map::Values values(impl_->values, defaults, batch.rows);
    Located located = map::make_located(batch.rows);
    Reading const guard = impl_->reading();
    impl_->table.find(batch.data(), batch.rows, answers(located));
    values.gather(impl_->table, {answers(located).indices, batch.rows});
    return values.take();
}

void BoundedHashMap::get_into(Tensor const& keys, std::vector<Tensor> const& defaults,
                              std::vector<void*> const& out, bool* found) const {
    CheckedBatch const batch = map::check_batch(keys, impl_->key, "keys");
    map::Defaults const fills(impl_->values, defaults, batch.rows);
    Located located = map::make_located(batch.rows);
    Reading const guard = impl_->reading();
    impl_->table.find(batch.data(), batch.rows, answers(located));
    for (std::size_t i = 0; i < out.size(); ++i) {
        if (out[i] != nullptr) {
            fills.gather(impl_->table, i, {answers(located).indices, batch.rows}, out[i]);
        }
    }
    if (found != nullptr && batch.rows > 0) {
        std::memcpy(found, located.mask.data(), batch.rows);
    }
}

std::vector<Tensor> BoundedHashMap::get_and_touch(Tensor const& keys,
                                                  std::vector<Tensor> const& defaults,
                                                  Tensor const& scores) {
    CheckedBatch const batch = map::check_batch(keys, impl_->key, "keys");
    std::optional<CheckedBatch> const given =
        map::check_scores(scores, impl_->ledger.eviction, batch.rows, false);
    map::Values values(impl_->values, defaults, batch.rows);
    Located located = map::make_located(batch.rows);
    Writing const guard = impl_->writing();
    table::UsedRows const used(impl_->ledger, batch.rows, given ? given->data() : nullptr);
    impl_->table.find(batch.data(), batch.rows, answers(located));
    table::touch(impl_->state(), used, answers(located).indices, batch.rows, given.has_value());
    impl_->ledger.end_batch(batch.rows);
    values.gather(impl_->table, {answers(located).indices, batch.rows});
    return values.take();
}

Tensor BoundedHashMap::active_buf_indices() const {
    Reading const guard = impl_->reading();
    return map::listed(impl_->table);
}

Tensor BoundedHashMap::keys() const {
    Reading const guard = impl_->reading();
    return map::items_of(impl_->table, impl_->key, {}).keys;
}

Items BoundedHashMap::items() const {
    Reading const guard = impl_->reading();
    return map::items_of(impl_->table, impl_->key, impl_->values);
}

Tensor BoundedHashMap::scores() const {
    Reading const guard = impl_->reading();
    return map::scores_of(impl_->table, impl_->values.size());
}

Evicted BoundedHashMap::entries() const {
    Reading const guard = impl_->reading();
    Items items = map::items_of(impl_->table, impl_->key, impl_->values);
    return {std::move(items.keys), std::move(items.values),
            map::scores_of(impl_->table, impl_->values.size())};
}

Tensor BoundedHashMap::key_tensor() const {
    Reading const guard = impl_->reading();
    return impl_->table.key_tensor();
}

Tensor BoundedHashMap::value_tensor(std::size_t column) const {
    map::check_column(column, impl_->values.size(), "value_buffer_id");
    Reading const guard = impl_->reading();
    return impl_->table.value_tensor(column);
}

void BoundedHashMap::clear() {
    Writing const guard = impl_->writing();
    impl_->table.clear();
    impl_->ledger.victims.forget();
}

Tensor BoundedHashMap::compact() {
    Writing const guard = impl_->writing();
    Tensor old_to_new = map::make_old_to_new(impl_->table);
    impl_->table.compact(static_cast<std::int32_t*>(old_to_new.data()));
    impl_->ledger.victims.forget();
    return old_to_new;
}

BoundedHashMap BoundedHashMap::clone() const {
    Reading const guard = impl_->reading();
    return BoundedHashMap(std::make_unique<Impl>(impl_->key, impl_->values, Table(impl_->table),
                                                 impl_->ledger.copy(), impl_->device));
}

std::int64_t BoundedHashMap::size() const {
    Reading const guard = impl_->reading();
    return static_cast<std::int64_t>(impl_->table.size());
}

std::int64_t BoundedHashMap::capacity() const noexcept {
    return static_cast<std::int64_t>(impl_->table.capacity());
}

std::uint64_t BoundedHashMap::clock() const {
    Reading const guard = impl_->reading();
    return impl_->ledger.clock;
}

Eviction BoundedHashMap::eviction() const noexcept { return impl_->ledger.eviction; }
Element const& BoundedHashMap::key_element() const noexcept { return impl_->key; }
std::vector<Element> const& BoundedHashMap::value_elements() const noexcept {
    return impl_->values;
}
Device BoundedHashMap::device() const noexcept { return impl_->device; }

MemoryUsage BoundedHashMap::memory_usage() const {
    Reading const guard = impl_->reading();
    return table::memory_of(impl_->state());
}

void BoundedHashMap::validate() const {
    Reading const guard = impl_->reading();
    impl_->table.validate();
    table::validate_uses(impl_->state());
}

Eviction eviction_from_name(std::string_view name) {
    if (name == "lru") return Eviction::Lru;
    if (name == "score") return Eviction::Score;
    throw ValueError("eviction: expected \"lru\" or \"score\", got \"" + std::string(name) + "\"");
}

}  // namespace tensorhash
