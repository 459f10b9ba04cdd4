// Shared by HashMap, BoundedHashMap and ShardedHashMap: locks, results, and copies of batches that
// lie in the table's own memory. AnyTable is any class with the functions that are called here,
// such as backend::TableBackend and table::Table.
#pragma once

#include <utility>
#include <vector>

#include "backend/batch.hpp"
#include "map/arguments.hpp"
#include "runtime/memory.hpp"
#include "tensor/shapes.hpp"

namespace tensorhash::map {

using backend::Answers;
using backend::Bytes;
using backend::KeyRows;

inline KeyRows key_rows(CheckedBatch const& keys) { return {keys.data(), keys.rows}; }

/// The device with the memory of a table's results. All CPU devices share the host's memory, and
/// tables without device() are on the CPU.
template <class AnyTable>
Device device_of(AnyTable const& table) {
    if constexpr (requires { table.device(); }) {
        return table.device().is_cpu() ? Device{} : table.device();
    } else {
        return {};
    }
}

/// A result that the table has just written, brought to `home`.
inline Tensor deliver(Tensor result, Device home) {
    if (!result.device().is_cpu()) {
        result.written_by(current_stream(result.device()));
        return result.to(home);
    }
    return result;
}
inline Located deliver(Located located, Device home) {
    return {deliver(std::move(located.indices), home), deliver(std::move(located.mask), home)};
}

/// The work so far reads the batch: its memory is freed only after that.
inline void mark_read(CheckedBatch const& batch) {
    batch.tensor.read_by(current_stream(batch.tensor.device()));
}
inline void mark_read(KeysAndValues const& batch) {
    mark_read(batch.keys);
    for (CheckedBatch const& column : batch.values) {
        mark_read(column);
    }
}

/// One tensor of uninitialized rows per column.
inline std::vector<Tensor> empty_rows(std::vector<Element> const& elements, std::size_t rows,
                                      Device device = {}) {
    std::vector<Tensor> made;
    for (Element const& element : elements) {
        made.push_back(Tensor::empty(with_rows(rows, element.shape), element.dtype, device));
    }
    return made;
}

/// The checked keys, each with a row of zeros per column.
inline KeysAndValues check_keys_and_zeros(Tensor const& keys, Element const& key,
                                          std::vector<Element> const& elements) {
    KeysAndValues batch{check_batch(keys, key, "keys"), {}};
    std::size_t const rows = batch.keys.rows;
    for (Element const& element : elements) {
        batch.values.push_back(
            {Tensor::zeros(with_rows(rows, element.shape), element.dtype), rows});
    }
    return batch;
}

inline Located make_located(std::size_t rows, Device device = {}) {
    return {Tensor::empty(with_rows(rows, {}), Dtype::Int32, device),
            Tensor::empty(with_rows(rows, {}), Dtype::Bool, device)};
}

inline Answers answers(Located& located) {
    return {static_cast<std::uint32_t*>(located.indices.data()),
            static_cast<unsigned char*>(located.mask.data())};
}

/// int32 [size]: the live buffer indices, ascending.
template <class AnyTable>
Tensor listed(AnyTable const& table) {
    auto const entries = static_cast<std::size_t>(table.sizes().entries);
    Device const device = device_of(table);
    Tensor indices = Tensor::empty(with_rows(entries, {}), Dtype::Int32, device);
    table.list(0, entries, static_cast<std::int32_t*>(indices.data()));
    return deliver(std::move(indices), device);
}

/// Copies of the live keys and of the first value columns, as many as `values` has.
template <class AnyTable>
Items items_of(AnyTable const& table, Element const& key, std::vector<Element> const& values) {
    auto const entries = static_cast<std::size_t>(table.sizes().entries);
    Device const device = device_of(table);
    Items items{Tensor::empty(with_rows(entries, key.shape), key.dtype, device),
                empty_rows(values, entries, device)};
    std::vector<void*> columns;
    for (Tensor& column : items.values) {
        columns.push_back(column.data());
    }
    table.items(items.keys.data(), columns);
    items.keys.written_by(current_stream(device));
    for (Tensor& column : items.values) {
        column.written_by(current_stream(device));
    }
    return items;
}

/// int64 [size]: column `scores` of a bounded table, in the order of listed().
template <class AnyTable>
Tensor scores_of(AnyTable const& table, std::size_t scores) {
    Tensor const indices = listed(table);
    Tensor out = Tensor::empty(indices.shape(), Dtype::Int64);
    table.gather(scores,
                 {static_cast<std::uint32_t const*>(indices.data()),
                  static_cast<std::size_t>(indices.size())},
                 out.data());
    return out;
}

/// int32 [capacity], to be filled by compact().
template <class AnyTable>
Tensor make_old_to_new(AnyTable const& table) {
    return Tensor::empty(with_rows(table.sizes().capacity, {}), Dtype::Int32, device_of(table));
}

/// Copies a batch that lies in the table's own memory: the call would change it while reading it.
template <class AnyTable>
void detach_from(AnyTable const& table, CheckedBatch& batch) {
    if (table.overlaps(batch.data(), batch.tensor.bytes())) {
        batch.tensor = batch.tensor.clone();
    }
}

/// The same for all batches of a call. Returns the address of each value column.
template <class AnyTable>
std::vector<Bytes> detach_from(AnyTable const& table, KeysAndValues& batch) {
    std::vector<Bytes> columns;
    columns.reserve(batch.values.size() + 2);  // a bounded table appends two
    detach_from(table, batch.keys);
    for (CheckedBatch& column : batch.values) {
        detach_from(table, column);
        columns.push_back(column.data());
    }
    return columns;
}

}  // namespace tensorhash::map
