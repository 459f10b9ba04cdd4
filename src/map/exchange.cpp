// HashMap's calls that work in the caller's memory: values out, everything out in chunks, everything replaced.
#include <algorithm>
#include <string>

#include "map/get.hpp"
#include "map/map_impl.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash {

using table::Batch;
using table::live_from;
using table::Reading;
using table::Writing;

void HashMap::get_into(Tensor const& keys, std::vector<Tensor> const& defaults,
                       std::vector<void*> const& out, bool* found) const {
    Batch const batch = table::check_batch(keys, impl_->key, "keys");
    table::Defaults const missing(impl_->values, defaults, batch.rows);
    runtime::Block numbers(batch.rows * sizeof(std::uint32_t));
    runtime::Block mask(found == nullptr ? batch.rows : 0);
    table::Answers const answers{
        reinterpret_cast<std::uint32_t*>(numbers.data()),
        found == nullptr ? mask.data() : reinterpret_cast<unsigned char*>(found)};
    Reading const guard(impl_->lock);
    impl_->table.find(batch.data(), batch.rows, answers);
    for (std::size_t i = 0; i < impl_->values.size(); ++i) {
        if (out[i] != nullptr) {
            missing.gather(impl_->table, i, answers.numbers, out[i]);
        }
    }
}

void HashMap::gather_into(Tensor const& indices, std::size_t column, Tensor const& missing,
                          void* out) const {
    Batch batch = table::check_batch(indices, Element{Dtype::Int32, {}}, "indices");
    batch.tensor = batch.tensor.clone();  // what was checked must be what is read
    if (column >= impl_->values.size()) {
        throw IndexError("column: expected less than the table's " +
                         std::to_string(impl_->values.size()) + " value columns, got " +
                         std::to_string(column));
    }
    table::Fill rows{};
    if (missing.dtype() != Dtype::Undefined) {
        rows = table::check_fill(missing, impl_->values[column], batch.rows, "default");
    }
    auto const* const numbers = reinterpret_cast<std::uint32_t const*>(batch.data());
    Reading const guard(impl_->lock);
    std::uint32_t const top = impl_->table.top();
    auto const* const wrong =
        std::find_if(numbers, numbers + batch.rows,
                     [&](std::uint32_t number) { return number >= top && number != UINT32_MAX; });
    if (wrong != numbers + batch.rows) {
        throw IndexError("indices: expected -1 to " + std::to_string(top) + " less one, got " +
                         std::to_string(static_cast<std::int32_t>(*wrong)));
    }
    table::Column const& from = impl_->table.values()[column];
    table::gather_rows(static_cast<unsigned char*>(out), from.block->data(), from.row_bytes,
                       numbers, batch.rows, rows.batch.data(), rows.step);
}

std::int64_t HashMap::export_from(std::int64_t begin, std::int64_t limit,
                                  MakeRoom const& make_room) const {
    if (begin < 0 || limit < 1) {
        throw ValueError("begin, limit: expected at least 0 and at least 1, got " +
                         std::to_string(begin) + " and " + std::to_string(limit));
    }
    Reading const guard(impl_->lock);
    table::Table const& table = impl_->table;
    auto const size = static_cast<std::int64_t>(table.size());
    std::vector<std::int32_t> indices;
    if (begin == 0 && limit >= size) {
        indices.resize(static_cast<std::size_t>(size));
        table.list(indices.data());
    } else {
        indices = live_from(table.live(), static_cast<std::uint64_t>(begin),
                            static_cast<std::uint64_t>(std::min(limit, size)));
    }
    ExportRoom const room = make_room(static_cast<std::int64_t>(indices.size()));
    auto const* const numbers = reinterpret_cast<std::uint32_t const*>(indices.data());
    auto const copy = [&](void* to, table::Column const& column) {
        if (to != nullptr) {
            table::gather_rows(static_cast<unsigned char*>(to), column.block->data(),
                               column.row_bytes, numbers, indices.size());
        }
    };
    copy(room.keys, table.keys());
    for (std::size_t i = 0; i < table.values().size() && i < room.values.size(); ++i) {
        copy(room.values[i], table.values()[i]);
    }
    if (room.indices != nullptr) {
        std::copy(indices.begin(), indices.end(), room.indices);
    }
    if (indices.empty()) {
        return -1;
    }
    std::int64_t const next = std::int64_t{indices.back()} + 1;
    return live_from(table.live(), static_cast<std::uint64_t>(next), 1).empty() ? -1 : next;
}

void HashMap::replace(Tensor const& keys, std::vector<Tensor> const& values) {
    Batch const key_batch = table::check_batch(keys, impl_->key, "keys");
    std::vector<Batch> const batches = table::check_values(values, impl_->values, key_batch.rows);
    std::vector<Reduce> const last(impl_->values.size(), Reduce::Last);
    std::vector<table::Bytes> rows;
    for (Batch const& batch : batches) {
        rows.push_back(batch.data());
    }
    runtime::Block numbers(key_batch.rows * sizeof(std::uint32_t));
    runtime::Block mask(key_batch.rows);
    // A table of its own, swapped in when it is whole: a failure costs nothing, and readers wait for the swap only.
    table::Table made = [&] {
        Reading const guard(impl_->lock);
        return table::Table(impl_->key, impl_->values, impl_->table.capacity(),
                            impl_->table.seed());
    }();
    made.upsert(key_batch.data(), key_batch.rows, rows, last,
                {reinterpret_cast<std::uint32_t*>(numbers.data()), mask.data()});
    Writing const guard(impl_->lock);
    std::swap(impl_->table, made);
}

}  // namespace tensorhash
