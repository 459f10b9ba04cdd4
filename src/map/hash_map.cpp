// HashMap: checks arguments, allocates results and takes locks; the back end does the work.
#include "tensorhash/hash_map.hpp"

#include <string>
#include <utility>

#include "backend/loader.hpp"
#include "map/get.hpp"
#include "map/map_impl.hpp"
#include "tensorhash/error.hpp"
#include "tensorhash/step/view.hpp"

namespace tensorhash {

using backend::KeyRows;
using backend::ValueRows;
using map::Answers;
using map::answers;
using map::CheckedBatch;
using map::KeysAndValues;
using map::make_located;

HashMap::HashMap(Capacity init_capacity, Element key, std::vector<Element> values, Device device,
                 std::optional<std::uint64_t> seed) {
    require_usable(device, "device");
    map::check_elements(key, values);
    std::uint64_t const capacity = map::check_capacity(init_capacity, "init_capacity");
    auto table =
        backend::backend_for(device, "device").make_table({key, values, capacity, seed}, device);
    impl_ = std::make_unique<Impl>(std::move(key), std::move(values), std::move(table));
}

HashMap::HashMap(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HashMap::HashMap(HashMap&&) noexcept = default;
HashMap& HashMap::operator=(HashMap&&) noexcept = default;
HashMap::~HashMap() = default;

HashMap HashMap::from_items(Tensor const& keys, std::vector<Tensor> const& values) {
    std::vector<Element> elements = map::elements_of(values);
    HashMap made(Capacity{0}, map::element_of(keys, "keys"), std::move(elements), keys.device());
    made.insert(keys, values);
    return made;
}

Located HashMap::insert(Tensor const& keys, std::vector<Tensor> const& values) {
    return impl_->write(
        map::check_keys_and_values(keys, impl_->key, values, impl_->values, device()),
        [&](KeyRows rows, ValueRows columns, Answers out) {
            impl_->table->insert({rows, columns, out});
        });
}

Located HashMap::insert_or_assign(Tensor const& keys, std::vector<Tensor> const& values) {
    return impl_->write(
        map::check_keys_and_values(keys, impl_->key, values, impl_->values, device()),
        [&](KeyRows rows, ValueRows columns, Answers out) {
            impl_->table->insert_or_assign({rows, columns, out});
        });
}

Located HashMap::accumulate(Tensor const& keys, std::vector<Tensor> const& values,
                            std::vector<Reduce> const& reduce) {
    KeysAndValues batch =
        map::check_keys_and_values(keys, impl_->key, values, impl_->values, device());
    std::vector<Reduce> const plain = map::resolve_reduce(reduce, impl_->values, batch);
    return impl_->write(std::move(batch), [&](KeyRows rows, ValueRows columns, Answers out) {
        impl_->table->accumulate({rows, columns, plain, out});
    });
}

Located HashMap::activate(Tensor const& keys) {
    return impl_->write(
        {map::check_batch(keys, impl_->key, "keys", device()), {}},
        [&](KeyRows rows, ValueRows, Answers out) { impl_->table->activate({rows, out}); });
}

Located HashMap::find(Tensor const& keys) const {
    CheckedBatch const batch = map::check_batch(keys, impl_->key, "keys", device());
    Located located = make_located(batch.rows, device());
    auto const guard = impl_->reading();
    impl_->table->find(key_rows(batch), answers(located));
    map::mark_read(batch);
    return map::deliver(std::move(located), batch.home);
}

Tensor HashMap::contains(Tensor const& keys) const { return find(keys).mask; }

Tensor HashMap::erase(Tensor const& keys) {
    CheckedBatch const batch = map::check_batch(keys, impl_->key, "keys", device());
    Tensor mask = Tensor::empty(with_rows(batch.rows, {}), Dtype::Bool, device());
    auto const guard = impl_->writing();
    impl_->table->erase({key_rows(batch), static_cast<unsigned char*>(mask.data())});
    map::mark_read(batch);
    return map::deliver(std::move(mask), batch.home);
}

std::vector<Tensor> HashMap::get(Tensor const& keys, std::vector<Tensor> const& defaults) const {
    CheckedBatch const batch = map::check_batch(keys, impl_->key, "keys", device());
    map::Values values(impl_->values, defaults, batch.rows, device());
    Located located = make_located(batch.rows, device());
    auto const guard = impl_->reading();
    impl_->table->find(key_rows(batch), answers(located));
    map::mark_read(batch);
    values.gather(*impl_->table, {answers(located).indices, batch.rows});
    return values.take(batch.home);
}

Tensor HashMap::active_buf_indices() const {
    auto const guard = impl_->reading();
    return map::listed(*impl_->table);
}

Tensor HashMap::keys() const {
    auto const guard = impl_->reading();
    return map::items_of(*impl_->table, impl_->key, {}).keys;
}

Items HashMap::items() const {
    auto const guard = impl_->reading();
    return map::items_of(*impl_->table, impl_->key, impl_->values);
}

step::IndexView HashMap::index_view(Dtype item, std::size_t bytes) const {
    // Bytes without a dtype are compared as they are, which is wrong for floats and bools.
    bool const is_plain = impl_->key.dtype != Dtype::Float32 &&
                          impl_->key.dtype != Dtype::Float64 && impl_->key.dtype != Dtype::Bool;
    bool const fits = item == impl_->key.dtype || (item == Dtype::Undefined && is_plain);
    if (!fits || bytes != impl_->key.bytes()) {
        throw TypeError(
            "view: expected a key type of " + std::to_string(impl_->key.bytes()) + " bytes of " +
            std::string(name(impl_->key.dtype)) + ", got one of " + std::to_string(bytes) +
            (item == Dtype::Undefined ? " bytes" : " bytes of " + std::string(name(item))));
    }
    auto const guard = impl_->reading();
    backend::LookupMemory const memory = impl_->table->lookup_memory();
    bool const is_float = item == Dtype::Float32 || item == Dtype::Float64;
    return {memory.buckets,
            memory.bucket_count,
            memory.keys,
            static_cast<std::uint32_t>(bytes),
            is_float ? static_cast<std::uint32_t>(byte_size(item)) : 0,
            step::secret_of(memory.seed)};
}

Tensor HashMap::key_tensor() const {
    auto const guard = impl_->reading();
    return impl_->table->key_tensor();
}

Tensor HashMap::value_tensor(std::size_t column) const {
    map::check_column(column, impl_->values.size(), "value_buffer_id");
    auto const guard = impl_->reading();
    return impl_->table->value_tensor(column);
}

std::vector<Tensor> HashMap::value_tensors() const {
    std::vector<Tensor> views;
    auto const guard = impl_->reading();
    for (std::size_t i = 0; i < impl_->values.size(); ++i) {
        views.push_back(impl_->table->value_tensor(i));
    }
    return views;
}

void HashMap::reserve(Capacity capacity) {
    std::uint64_t const rows = map::check_capacity(capacity, "capacity");
    auto const guard = impl_->writing();
    impl_->table->reserve({rows});
}

void HashMap::shrink_to_fit() {
    auto const guard = impl_->writing();
    impl_->table->finish(impl_->table->prepare(backend::Shrink{}));
}

void HashMap::clear() {
    auto const guard = impl_->writing();
    impl_->table->clear();
}

Tensor HashMap::compact() {
    auto const guard = impl_->writing();
    Tensor old_to_new = map::make_old_to_new(*impl_->table);
    impl_->table->compact({static_cast<std::int32_t*>(old_to_new.data())});
    return map::deliver(std::move(old_to_new), device());
}

HashMap HashMap::clone() const {
    auto const guard = impl_->reading();
    return HashMap(std::make_unique<Impl>(impl_->key, impl_->values, impl_->table->clone()));
}

HashMap HashMap::to(Device device) const {
    auto const guard = impl_->reading();
    backend::TableImage const image = impl_->table->to_cpu();
    auto table = backend::backend_for(device, "device")
                     .make_table({impl_->key, impl_->values, image.capacity}, device);
    table->from_cpu(image);
    return HashMap(std::make_unique<Impl>(impl_->key, impl_->values, std::move(table)));
}

std::int64_t HashMap::size() const {
    auto const guard = impl_->reading();
    return static_cast<std::int64_t>(impl_->table->sizes().entries);
}

std::int64_t HashMap::capacity() const {
    auto const guard = impl_->reading();
    return static_cast<std::int64_t>(impl_->table->sizes().capacity);
}

Element const& HashMap::key_element() const noexcept { return impl_->key; }
std::vector<Element> const& HashMap::value_elements() const noexcept { return impl_->values; }
Device HashMap::device() const noexcept { return impl_->table->device(); }

MemoryUsage HashMap::memory_usage() const {
    auto const guard = impl_->reading();
    return impl_->table->memory_usage();
}

std::uint64_t HashMap::memory_for(Capacity capacity, Element const& key,
                                  std::vector<Element> const& values) {
    map::check_elements(key, values);
    return backend::backend_for(Device{}, "device")
        .memory_for({key, values, map::check_capacity(capacity, "capacity")});
}

void HashMap::validate() const {
    auto const guard = impl_->reading();
    impl_->table->validate();
}

HashSet::HashSet(HashMap map) : map_(std::move(map)) {
    if (!map_.value_elements().empty()) {
        throw ValueError("map: a HashSet has no value columns, this map has " +
                         std::to_string(map_.value_elements().size()));
    }
}

Reduce reduce_from_name(std::string_view name) {
    constexpr std::string_view kNames[] = {"first", "last", "sum", "min",  "max",
                                           "prod",  "any",  "all", "count"};
    for (std::size_t i = 0; i < std::size(kNames); ++i) {
        if (kNames[i] == name) {
            return static_cast<Reduce>(i);
        }
    }
    throw ValueError(
        "reduce: expected \"sum\", \"min\", \"max\", \"first\", \"last\", \"prod\", \"any\", "
        "\"all\" or \"count\", got \"" +
        std::string(name) + "\"");
}

}  // namespace tensorhash
