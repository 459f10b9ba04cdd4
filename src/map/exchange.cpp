// HashMap's calls that use the caller's memory: get values, export in chunks, replace all content.
#include <algorithm>
#include <string>

#include "map/get.hpp"
#include "map/map_impl.hpp"
#include "tensorhash/error.hpp"
#include "tensorhash/step/bucket.hpp"

namespace tensorhash {

using map::Answers;
using map::CheckedBatch;

void HashMap::get_into(Tensor const& keys, std::vector<Tensor> const& defaults,
                       std::vector<void*> const& out, bool* found) const {
    impl_->require_cpu("get_into");
    CheckedBatch const batch = map::check_batch(keys, impl_->key, "keys");
    map::Defaults const missing(impl_->values, defaults, batch.rows);
    runtime::Block indices(batch.rows * sizeof(std::uint32_t));
    runtime::Block mask(found == nullptr ? batch.rows : 0);
    Answers const answers{reinterpret_cast<std::uint32_t*>(indices.data()),
                          found == nullptr ? mask.data() : reinterpret_cast<unsigned char*>(found)};
    auto const guard = impl_->reading();
    impl_->table->find(key_rows(batch), answers);
    for (std::size_t i = 0; i < impl_->values.size(); ++i) {
        if (out[i] != nullptr) {
            missing.gather(*impl_->table, i, {answers.indices, batch.rows}, out[i]);
        }
    }
}

void HashMap::gather_into(Tensor const& indices, std::size_t column, Tensor const& missing,
                          void* out) const {
    impl_->require_cpu("gather_into");
    CheckedBatch batch = map::check_batch(indices, Element{Dtype::Int32, {}}, "indices");
    batch.tensor = batch.tensor.clone();  // the caller's array may change after the check
    map::check_column(column, impl_->values.size(), "column");
    map::FillRows rows{};
    if (missing.dtype() != Dtype::Undefined) {
        rows = map::check_fill(missing, impl_->values[column], batch.rows, "default");
    }
    auto const* const at = reinterpret_cast<std::uint32_t const*>(batch.data());
    auto const guard = impl_->reading();
    std::uint32_t const top = impl_->table->sizes().top;
    auto const* const wrong = std::find_if(at, at + batch.rows, [&](std::uint32_t index) {
        return index >= top && index != step::kNotFound;
    });
    if (wrong != at + batch.rows) {
        throw IndexError("indices: expected -1 or a buffer index below " + std::to_string(top) +
                         ", got " + std::to_string(static_cast<std::int32_t>(*wrong)));
    }
    impl_->table->gather(column, {at, batch.rows, rows.rows()}, out);
}

std::int64_t HashMap::export_from(std::int64_t begin, std::int64_t limit,
                                  MakeRoom const& make_room) const {
    impl_->require_cpu("export_from");
    if (begin < 0 || limit < 1) {
        throw ValueError("begin, limit: expected at least 0 and at least 1, got " +
                         std::to_string(begin) + " and " + std::to_string(limit));
    }
    auto const guard = impl_->reading();
    backend::TableBackend const& table = *impl_->table;
    auto const entries = static_cast<std::int64_t>(table.sizes().entries);
    std::vector<std::int32_t> indices(static_cast<std::size_t>(std::min(limit, entries)));
    indices.resize(table.list(static_cast<std::uint64_t>(begin), indices.size(), indices.data()));
    ExportRoom const room = make_room(static_cast<std::int64_t>(indices.size()));
    backend::Gather const rows{reinterpret_cast<std::uint32_t const*>(indices.data()),
                               indices.size()};
    if (room.keys != nullptr) {
        table.gather_keys(rows, room.keys);
    }
    for (std::size_t i = 0; i < impl_->values.size() && i < room.values.size(); ++i) {
        if (room.values[i] != nullptr) {
            table.gather(i, rows, room.values[i]);
        }
    }
    if (room.indices != nullptr) {
        std::copy(indices.begin(), indices.end(), room.indices);
    }
    if (indices.empty()) {
        return -1;
    }
    std::int64_t const next = std::int64_t{indices.back()} + 1;
    std::int32_t following = 0;
    bool const more = table.list(static_cast<std::uint64_t>(next), 1, &following) != 0;
    return more ? next : -1;
}

void HashMap::replace(Tensor const& keys, std::vector<Tensor> const& values) {
    map::KeysAndValues const batch =
        map::check_keys_and_values(keys, impl_->key, values, impl_->values, device());
    std::vector<backend::Bytes> rows;
    for (CheckedBatch const& column : batch.values) {
        rows.push_back(column.data());
    }
    Located scratch = map::make_located(batch.keys.rows, device());
    // Fills a new table and swaps it in: a failure changes nothing, readers wait only for the swap.
    std::unique_ptr<backend::TableBackend> made = [&] {
        auto const guard = impl_->reading();
        return impl_->table->make_empty();
    }();
    made->insert_or_assign({key_rows(batch.keys), {rows}, map::answers(scratch)});
    map::mark_read(batch);
    auto const guard = impl_->writing();
    std::swap(impl_->table, made);
}

}  // namespace tensorhash
