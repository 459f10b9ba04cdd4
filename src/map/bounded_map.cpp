// BoundedHashMap: arguments, locks and results; what leaves is planned by evict.cpp, the entries are the table's.
// Score and last use are two value columns behind the caller's, so that clone, compact and files take them along.
#include "tensorhash/bounded_map.hpp"

#include <optional>
#include <string>

#include "io/bounded_format.hpp"
#include "map/get.hpp"
#include "map/results.hpp"
#include "map/update.hpp"
#include "table/bounded_batch.hpp"
#include "table/steps.hpp"
#include "tensorhash/error.hpp"
#include "tensorhash/file.hpp"

namespace tensorhash {

using table::answers;
using table::Batch;
using table::Reading;
using table::Table;
using table::with_hidden;
using table::with_rows;
using table::Writing;

struct BoundedHashMap::Impl {
    Impl(Element key_element, std::vector<Element> value_elements, Table t, table::Ledger l)
        : key(std::move(key_element)), values(std::move(value_elements)), entries(std::move(t)),
          ledger(std::move(l)) {}

    Element const key;
    std::vector<Element> const values;  // the caller's
    Table entries;
    table::Ledger ledger;
    mutable runtime::ReadWriteLock lock;

    Table& table() noexcept { return entries; }
    table::BoundedState state() noexcept { return {entries, ledger}; }
    std::size_t columns() const noexcept { return values.size(); }
};

BoundedHashMap::BoundedHashMap(Capacity max_capacity, Element key, std::vector<Element> values,
                               Eviction eviction, Device device,
                               std::optional<std::uint64_t> seed) {
    require_usable(device, "device");
    table::check_elements(key, values);
    std::int64_t const rows = max_capacity.rows;
    if (rows < 1 || rows > static_cast<std::int64_t>(table::kMaxEntries)) {
        throw ValueError("max_capacity: expected 1 to " + std::to_string(table::kMaxEntries) +
                         " entries, got " + std::to_string(rows));
    }
    Table made(key, with_hidden(values), static_cast<std::uint64_t>(rows), seed);
    impl_ = std::make_unique<Impl>(std::move(key), std::move(values), std::move(made),
                                   table::Ledger(eviction));
}

BoundedHashMap::BoundedHashMap(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
BoundedHashMap::BoundedHashMap(BoundedHashMap&&) noexcept = default;
BoundedHashMap& BoundedHashMap::operator=(BoundedHashMap&&) noexcept = default;
BoundedHashMap::~BoundedHashMap() = default;

Admitted BoundedHashMap::insert(Tensor const& keys, std::vector<Tensor> const& values,
                                Tensor const& scores) {
    return accumulate(keys, values, {Reduce::First}, scores);
}

Admitted BoundedHashMap::insert_or_assign(Tensor const& keys, std::vector<Tensor> const& values,
                                          Tensor const& scores) {
    return accumulate(keys, values, {Reduce::Last}, scores);
}

Admitted BoundedHashMap::activate(Tensor const& keys, Tensor const& scores) {
    Batch const batch = table::check_batch(keys, impl_->key, "keys");
    return accumulate(batch.tensor, table::zero_rows(impl_->values, batch.rows), {Reduce::First},
                      scores);
}

Admitted BoundedHashMap::accumulate(Tensor const& keys, std::vector<Tensor> const& values,
                                    std::vector<Reduce> const& reduce, Tensor const& scores) {
    Batch key_batch = table::check_batch(keys, impl_->key, "keys");
    std::vector<Batch> batches = table::check_values(values, impl_->values, key_batch.rows);
    std::vector<Reduce> reduces = table::check_reduce(reduce, impl_->columns());
    std::optional<Batch> const given =
        table::check_scores(scores, impl_->ledger.eviction, key_batch.rows, true);
    std::vector<Element> const elements = with_hidden(impl_->values);
    Located located = table::make_located(key_batch.rows);
    Writing const guard(impl_->lock);
    table::detach_from(impl_->table(), key_batch);
    std::vector<table::Bytes> rows;
    for (Batch& batch : batches) {
        table::detach_from(impl_->table(), batch);
        rows.push_back(batch.data());
    }
    table::UsedRows const used(impl_->ledger, key_batch.rows, given ? &*given : nullptr);
    rows.push_back(used.scores());
    rows.push_back(used.uses());
    reduces.insert(reduces.end(), 2, Reduce::Last);
    table::Candidates const candidates{impl_->key, elements, key_batch.data(), key_batch.rows, rows,
                                       reduces,    used};
    Admitted out{located.indices, located.mask, {}};
    table::Admission admission = prepare_admit(impl_->state(), candidates, answers(located));
    try {
        out.evicted = table::make_evicted(impl_->key, elements, admission.leaving());
    } catch (...) {
        table::cancel_admit(impl_->state(), admission);
        throw;
    }
    table::finish_admit(impl_->state(), candidates, std::move(admission), answers(located),
                        out.evicted);
    impl_->ledger.end_batch(key_batch.rows);
    return out;
}

Located BoundedHashMap::update(Tensor const& keys, Tensor const& gradients,
                               Optimizer const& optimizer, UpdateOptions const& options) {
    RowStep const step = table::make_step(optimizer, impl_->values);
    if (options.missing == Missing::Insert) {
        table::fail_insert_in_update();
    }
    Batch key_batch = table::check_batch(keys, impl_->key, "keys");
    Batch gradient_batch = table::check_gradients(gradients, impl_->values[0], key_batch.rows);
    Located located = table::make_located(key_batch.rows);
    table::Answers const out = answers(located);
    Writing const guard(impl_->lock);
    table::detach_from(impl_->table(), key_batch);
    table::detach_from(impl_->table(), gradient_batch);
    table::Steps steps(impl_->table(), impl_->key, key_batch, impl_->values[0], gradient_batch,
                       options.duplicates);
    table::UsedRows const used(impl_->ledger, key_batch.rows, nullptr);
    impl_->table().find(key_batch.data(), key_batch.rows, out);
    if (options.missing == Missing::Error) {
        table::require_found(out.mask, key_batch.rows, "skip");
    }
    steps.apply(impl_->table(), out.numbers, step);
    table::touch(impl_->state(), used, out.numbers, key_batch.rows, false);
    impl_->ledger.end_batch(key_batch.rows);
    return located;
}

Located BoundedHashMap::find(Tensor const& keys) const {
    Batch const batch = table::check_batch(keys, impl_->key, "keys");
    Located located = table::make_located(batch.rows);
    Reading const guard(impl_->lock);
    impl_->table().find(batch.data(), batch.rows, answers(located));
    return located;
}

Tensor BoundedHashMap::contains(Tensor const& keys) const { return find(keys).mask; }

Tensor BoundedHashMap::erase(Tensor const& keys) {
    Batch const batch = table::check_batch(keys, impl_->key, "keys");
    Tensor mask = Tensor::empty(with_rows(batch.rows, {}), Dtype::Bool);
    Writing const guard(impl_->lock);
    impl_->table().erase(batch.data(), batch.rows, static_cast<unsigned char*>(mask.data()));
    ++impl_->ledger.clock;
    return mask;
}

std::vector<Tensor> BoundedHashMap::get(Tensor const& keys,
                                        std::vector<Tensor> const& defaults) const {
    Batch const batch = table::check_batch(keys, impl_->key, "keys");
    table::Values values(impl_->values, defaults, batch.rows);
    Located located = table::make_located(batch.rows);
    Reading const guard(impl_->lock);
    impl_->table().find(batch.data(), batch.rows, answers(located));
    return values.gather(impl_->table(), answers(located).numbers);
}

std::vector<Tensor> BoundedHashMap::get_and_touch(Tensor const& keys,
                                                  std::vector<Tensor> const& defaults,
                                                  Tensor const& scores) {
    Batch const batch = table::check_batch(keys, impl_->key, "keys");
    std::optional<Batch> const given =
        table::check_scores(scores, impl_->ledger.eviction, batch.rows, false);
    table::Values values(impl_->values, defaults, batch.rows);
    Located located = table::make_located(batch.rows);
    Writing const guard(impl_->lock);
    table::UsedRows const used(impl_->ledger, batch.rows, given ? &*given : nullptr);
    impl_->table().find(batch.data(), batch.rows, answers(located));
    table::touch(impl_->state(), used, answers(located).numbers, batch.rows, given.has_value());
    impl_->ledger.end_batch(batch.rows);
    return values.gather(impl_->table(), answers(located).numbers);
}

Tensor BoundedHashMap::active_buf_indices() const {
    Reading const guard(impl_->lock);
    return table::listed(impl_->table());
}

Tensor BoundedHashMap::keys() const {
    Reading const guard(impl_->lock);
    return table::gathered(impl_->table().keys(), impl_->key, table::listed(impl_->table()));
}

Items BoundedHashMap::items() const {
    Reading const guard(impl_->lock);
    Tensor const indices = table::listed(impl_->table());
    Items items{table::gathered(impl_->table().keys(), impl_->key, indices), {}};
    for (std::size_t i = 0; i < impl_->columns(); ++i) {
        items.values.push_back(
            table::gathered(impl_->table().values()[i], impl_->values[i], indices));
    }
    return items;
}

Tensor BoundedHashMap::scores() const {
    Reading const guard(impl_->lock);
    return table::gathered(impl_->table().values()[impl_->columns()], table::kScore,
                           table::listed(impl_->table()));
}

Tensor BoundedHashMap::key_tensor() const {
    Reading const guard(impl_->lock);
    return table::column_view(impl_->table().keys(), impl_->key, impl_->table().capacity())
        .as_read_only();
}

Tensor BoundedHashMap::value_tensor(std::size_t column) const {
    if (column >= impl_->columns()) {
        throw IndexError("value_buffer_id: expected less than the table's " +
                         std::to_string(impl_->columns()) + " value columns, got " +
                         std::to_string(column));
    }
    Reading const guard(impl_->lock);
    return table::column_view(impl_->table().values()[column], impl_->values[column],
                              impl_->table().capacity());
}

void BoundedHashMap::clear() {
    Writing const guard(impl_->lock);
    impl_->table().clear();
    impl_->ledger.victims.forget();
}

Tensor BoundedHashMap::compact() {
    Writing const guard(impl_->lock);
    Tensor old_to_new = Tensor::empty(with_rows(impl_->table().capacity(), {}), Dtype::Int32);
    impl_->table().compact(static_cast<std::int32_t*>(old_to_new.data()));
    impl_->ledger.victims.forget();
    return old_to_new;
}

BoundedHashMap BoundedHashMap::clone() const {
    Reading const guard(impl_->lock);
    return BoundedHashMap(std::make_unique<Impl>(impl_->key, impl_->values, Table(impl_->table()),
                                                 impl_->ledger.copy()));
}

std::int64_t BoundedHashMap::size() const {
    Reading const guard(impl_->lock);
    return static_cast<std::int64_t>(impl_->table().size());
}

std::int64_t BoundedHashMap::capacity() const noexcept {
    return static_cast<std::int64_t>(impl_->table().capacity());
}

std::uint64_t BoundedHashMap::clock() const {
    Reading const guard(impl_->lock);
    return impl_->ledger.clock;
}

Eviction BoundedHashMap::eviction() const noexcept { return impl_->ledger.eviction; }
Element const& BoundedHashMap::key_element() const noexcept { return impl_->key; }
std::vector<Element> const& BoundedHashMap::value_elements() const noexcept {
    return impl_->values;
}
Device BoundedHashMap::device() const noexcept { return {}; }

MemoryUsage BoundedHashMap::memory_usage() const {
    Reading const guard(impl_->lock);
    return table::memory_of(impl_->state());
}

void BoundedHashMap::validate() const {
    Reading const guard(impl_->lock);
    impl_->table().validate();
    table::validate_uses(impl_->state());
}

void BoundedHashMap::save(std::string const& file_name) const {
    Reading const guard(impl_->lock);
    io::replace_file(file_name, [&](io::Sink& sink) {
        table::write_bounded(sink, impl_->key, with_hidden(impl_->values), impl_->state());
    });
}

Tensor BoundedHashMap::to_bytes() const {
    Reading const guard(impl_->lock);
    io::MemorySink sink;
    table::write_bounded(sink, impl_->key, with_hidden(impl_->values), impl_->state());
    return sink.take();
}

BoundedHashMap BoundedHashMap::load(std::string const& file_name,
                                    std::optional<std::uint64_t> max_bytes) {
    try {
        return from_bytes(io::read_file(file_name, max_bytes), max_bytes);
    } catch (FormatError const& error) {
        throw FormatError("file_name: \"" + file_name + "\" is " + error.what());
    }
}

BoundedHashMap BoundedHashMap::from_bytes(Tensor const& bytes,
                                          std::optional<std::uint64_t> max_bytes) {
    Tensor const file = table::check_bytes(bytes);
    auto const count = static_cast<std::size_t>(file.size());
    table::BoundedImage image =
        table::read_bounded(static_cast<unsigned char const*>(file.data()), count);
    io::require_within(io::memory_of({&image.table, 1}), load_limit(count, max_bytes));
    table::RestoredBounded made = table::build_bounded(std::move(image));
    return BoundedHashMap(std::make_unique<Impl>(std::move(made.key), std::move(made.values),
                                                 std::move(made.table), std::move(made.ledger)));
}

Eviction eviction_from_name(std::string_view name) {
    if (name == "lru") return Eviction::Lru;
    if (name == "score") return Eviction::Score;
    throw ValueError("eviction: expected \"lru\" or \"score\", got \"" + std::string(name) + "\"");
}

}  // namespace tensorhash
