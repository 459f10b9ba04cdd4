// HashMap: arguments are checked, results allocated and locks taken here; the work is the table's.
#include "tensorhash/hash_map.hpp"

#include <algorithm>
#include <string>

#include "io/file.hpp"
#include "io/format.hpp"
#include "map/get.hpp"
#include "map/map_impl.hpp"
#include "map/results.hpp"
#include "tensorhash/error.hpp"
#include "tensorhash/file.hpp"

namespace tensorhash {

using table::answers;
using table::Batch;
using table::column_view;
using table::detach_from;
using table::gathered;
using table::listed;
using table::make_located;
using table::Reading;
using table::Table;
using table::with_rows;
using table::Writing;

HashMap::HashMap(Capacity init_capacity, Element key, std::vector<Element> values, Device device,
                 std::optional<std::uint64_t> seed) {
    require_usable(device, "device");
    table::check_elements(key, values);
    Table made(key, values, table::check_capacity(init_capacity, "init_capacity"), seed);
    impl_ = std::make_unique<Impl>(std::move(key), std::move(values), std::move(made));
}

HashMap::HashMap(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HashMap::HashMap(HashMap&&) noexcept = default;
HashMap& HashMap::operator=(HashMap&&) noexcept = default;
HashMap::~HashMap() = default;

HashMap HashMap::from_items(Tensor const& keys, std::vector<Tensor> const& values) {
    std::vector<Element> elements;
    for (std::size_t i = 0; i < values.size(); ++i) {
        elements.push_back(table::element_of(values[i], "values[" + std::to_string(i) + "]"));
    }
    HashMap map(Capacity{0}, table::element_of(keys, "keys"), std::move(elements), keys.device());
    map.insert(keys, values);
    return map;
}

Located HashMap::insert(Tensor const& keys, std::vector<Tensor> const& values) {
    return accumulate(keys, values, {Reduce::First});
}

Located HashMap::insert_or_assign(Tensor const& keys, std::vector<Tensor> const& values) {
    return accumulate(keys, values, {Reduce::Last});
}

Located HashMap::accumulate(Tensor const& keys, std::vector<Tensor> const& values,
                            std::vector<Reduce> const& reduce) {
    Batch key_batch = table::check_batch(keys, impl_->key, "keys");
    std::vector<Batch> batches = table::check_values(values, impl_->values, key_batch.rows);
    std::vector<Reduce> const reduces = table::check_reduce(reduce, impl_->values.size());
    Located located = make_located(key_batch.rows);
    std::vector<table::Bytes> rows;
    Writing const guard(impl_->lock);
    detach_from(impl_->table, key_batch);
    for (Batch& batch : batches) {
        detach_from(impl_->table, batch);
        rows.push_back(batch.data());
    }
    impl_->table.upsert(key_batch.data(), key_batch.rows, rows, reduces, answers(located));
    return located;
}

Located HashMap::activate(Tensor const& keys) {
    Batch batch = table::check_batch(keys, impl_->key, "keys");
    Located located = make_located(batch.rows);
    Writing const guard(impl_->lock);
    detach_from(impl_->table, batch);
    impl_->table.activate(batch.data(), batch.rows, answers(located));
    return located;
}

Located HashMap::find(Tensor const& keys) const {
    Batch const batch = table::check_batch(keys, impl_->key, "keys");
    Located located = make_located(batch.rows);
    Reading const guard(impl_->lock);
    impl_->table.find(batch.data(), batch.rows, answers(located));
    return located;
}

Tensor HashMap::contains(Tensor const& keys) const { return find(keys).mask; }

Tensor HashMap::erase(Tensor const& keys) {
    Batch const batch = table::check_batch(keys, impl_->key, "keys");
    Tensor mask = Tensor::empty(with_rows(batch.rows, {}), Dtype::Bool);
    Writing const guard(impl_->lock);
    impl_->table.erase(batch.data(), batch.rows, static_cast<unsigned char*>(mask.data()));
    return mask;
}

std::vector<Tensor> HashMap::get(Tensor const& keys, std::vector<Tensor> const& defaults) const {
    Batch const batch = table::check_batch(keys, impl_->key, "keys");
    table::Values values(impl_->values, defaults, batch.rows);
    Located located = make_located(batch.rows);
    Reading const guard(impl_->lock);
    impl_->table.find(batch.data(), batch.rows, answers(located));
    return values.gather(impl_->table, answers(located).numbers);
}

Tensor HashMap::active_buf_indices() const {
    Reading const guard(impl_->lock);
    return listed(impl_->table);
}

Tensor HashMap::keys() const {
    Reading const guard(impl_->lock);
    return gathered(impl_->table.keys(), impl_->key, listed(impl_->table));
}

Items HashMap::items() const {
    Reading const guard(impl_->lock);
    Tensor const indices = listed(impl_->table);
    Items items{gathered(impl_->table.keys(), impl_->key, indices), {}};
    for (std::size_t i = 0; i < impl_->values.size(); ++i) {
        items.values.push_back(gathered(impl_->table.values()[i], impl_->values[i], indices));
    }
    return items;
}

Tensor HashMap::key_tensor() const {
    Reading const guard(impl_->lock);
    return column_view(impl_->table.keys(), impl_->key, impl_->table.capacity()).as_read_only();
}

Tensor HashMap::value_tensor(std::size_t column) const {
    if (column >= impl_->values.size()) {
        throw IndexError("value_buffer_id: expected less than the table's " +
                         std::to_string(impl_->values.size()) + " value columns, got " +
                         std::to_string(column));
    }
    Reading const guard(impl_->lock);
    return column_view(impl_->table.values()[column], impl_->values[column],
                       impl_->table.capacity());
}

std::vector<Tensor> HashMap::value_tensors() const {
    std::vector<Tensor> views;
    Reading const guard(impl_->lock);
    for (std::size_t i = 0; i < impl_->values.size(); ++i) {
        views.push_back(
            column_view(impl_->table.values()[i], impl_->values[i], impl_->table.capacity()));
    }
    return views;
}

void HashMap::reserve(Capacity capacity) {
    std::uint64_t const rows = table::check_capacity(capacity, "capacity");
    Writing const guard(impl_->lock);
    impl_->table.reserve(rows);
}

void HashMap::clear() {
    Writing const guard(impl_->lock);
    impl_->table.clear();
}

Tensor HashMap::compact() {
    Writing const guard(impl_->lock);
    Tensor old_to_new = Tensor::empty(with_rows(impl_->table.capacity(), {}), Dtype::Int32);
    impl_->table.compact(static_cast<std::int32_t*>(old_to_new.data()));
    return old_to_new;
}

HashMap HashMap::clone() const {
    Reading const guard(impl_->lock);
    return HashMap(std::make_unique<Impl>(impl_->key, impl_->values, Table(impl_->table)));
}

std::int64_t HashMap::size() const {
    Reading const guard(impl_->lock);
    return static_cast<std::int64_t>(impl_->table.size());
}

std::int64_t HashMap::capacity() const {
    Reading const guard(impl_->lock);
    return static_cast<std::int64_t>(impl_->table.capacity());
}

Element const& HashMap::key_element() const noexcept { return impl_->key; }
std::vector<Element> const& HashMap::value_elements() const noexcept { return impl_->values; }
Device HashMap::device() const noexcept { return {}; }

MemoryUsage HashMap::memory_usage() const {
    Reading const guard(impl_->lock);
    return impl_->table.memory_usage();
}

std::uint64_t HashMap::memory_for(Capacity capacity, Element const& key,
                                  std::vector<Element> const& values) {
    table::check_elements(key, values);
    return Table::memory_for(key, values, table::check_capacity(capacity, "capacity"));
}

void HashMap::validate() const {
    Reading const guard(impl_->lock);
    impl_->table.validate();
}

void HashMap::save(std::string const& file_name) const {
    Reading const guard(impl_->lock);
    io::replace_file(file_name, [&](io::Sink& sink) {
        io::write_table(sink, impl_->key, impl_->values, impl_->table);
    });
}

HashMap HashMap::load(std::string const& file_name, std::optional<std::uint64_t> max_bytes) {
    try {
        return from_bytes(io::read_file(file_name, max_bytes), max_bytes);
    } catch (FormatError const& error) {
        throw FormatError("file_name: \"" + file_name + "\" is " + error.what());
    }
}

Tensor HashMap::to_bytes() const {
    Reading const guard(impl_->lock);
    io::MemorySink sink;
    io::write_table(sink, impl_->key, impl_->values, impl_->table);
    return sink.take();
}

HashMap HashMap::from_bytes(Tensor const& bytes, std::optional<std::uint64_t> max_bytes) {
    Tensor const file = table::check_bytes(bytes);
    auto const count = static_cast<std::size_t>(file.size());
    io::Image image = io::read_image(static_cast<unsigned char const*>(file.data()), count);
    std::uint64_t const limit = load_limit(count, max_bytes);
    std::uint64_t const rows =
        io::fits_with_capacity({&image, 1}, limit) ? image.capacity : image.top;
    io::Restored restored = io::build_table(std::move(image), rows);
    return HashMap(std::make_unique<Impl>(std::move(restored.key), std::move(restored.values),
                                          std::move(restored.table)));
}

HashMap HashMap::from_parts(Tensor const& keys, std::vector<Tensor> const& values,
                            Tensor const& buf_indices) {
    Element const key = table::element_of(keys, "keys");
    std::vector<Element> elements;
    for (std::size_t i = 0; i < values.size(); ++i) {
        elements.push_back(table::element_of(values[i], "values[" + std::to_string(i) + "]"));
    }
    Batch const key_batch = table::check_batch(keys, key, "keys");
    std::vector<Batch> const batches = table::check_values(values, elements, key_batch.rows);
    Batch places = table::check_batch(buf_indices, Element{Dtype::Int32, {}}, "buf_indices");
    places.tensor = places.tensor.clone();  // what was checked must be what is written to
    if (places.rows != key_batch.rows) {
        throw ValueError("buf_indices: expected " + std::to_string(key_batch.rows) +
                         " rows, as many as keys, got " + std::to_string(places.rows));
    }
    Tensor const flat = places.tensor.reshape(with_rows(places.rows, {}));
    auto const numbers = flat.as<std::int32_t>();
    std::int32_t top = 0;
    for (std::int32_t const number : numbers) {
        if (number < 0 || number == INT32_MAX) {
            throw ValueError("buf_indices: expected 0 to " + std::to_string(INT32_MAX - 1) +
                             ", got " + std::to_string(number));
        }
        top = std::max(top, number + 1);
    }
    HashMap map(Capacity{top}, key, elements);
    Table& made = map.impl_->table;
    std::vector<unsigned char> taken(static_cast<std::size_t>(top), 0);
    for (std::int32_t const number : numbers) {
        if (taken[static_cast<std::size_t>(number)]++ != 0) {
            throw ValueError("buf_indices: " + std::to_string(number) + " is listed twice");
        }
    }
    // Gaps go on the stack so that the lowest is reused first.
    std::vector<std::uint32_t> free;
    free.reserve(taken.size() - key_batch.rows);
    for (std::size_t i = taken.size(); i-- > 0;) {
        if (taken[i] == 0) {
            free.push_back(static_cast<std::uint32_t>(i));
        }
    }
    std::vector<unsigned char> const all(key_batch.rows, 1);
    auto const* const places_data = reinterpret_cast<std::uint32_t const*>(numbers.data());
    auto const put = [&](table::Column& column, Batch const& batch) {
        table::scatter_rows(column.block->data(), batch.data(), column.row_bytes, places_data,
                            all.data(), batch.rows);
    };
    put(made.raw_keys(), key_batch);
    for (std::size_t i = 0; i < batches.size(); ++i) {
        put(made.raw_values()[i], batches[i]);
    }
    try {
        made.restore(static_cast<std::uint32_t>(top), std::move(free));
    } catch (CorruptTable const& error) {
        throw ValueError("keys: expected distinct keys; " + std::string(error.what()));
    }
    return map;
}

HashSet::HashSet(HashMap map) : map_(std::move(map)) {
    if (!map_.value_elements().empty()) {
        throw ValueError("map: a HashSet has no value columns, this map has " +
                         std::to_string(map_.value_elements().size()));
    }
}

Reduce reduce_from_name(std::string_view name) {
    constexpr std::string_view kNames[] = {"first", "last", "sum", "min", "max"};
    for (std::uint8_t i = 0; i < 5; ++i) {
        if (kNames[i] == name) {
            return static_cast<Reduce>(i);
        }
    }
    throw ValueError("reduce: expected \"sum\", \"min\", \"max\", \"first\" or \"last\", got \"" +
                     std::string(name) + "\"");
}

}  // namespace tensorhash
