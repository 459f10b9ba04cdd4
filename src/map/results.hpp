// What the fronts of a table share: results allocated, buffers shown as tensors, batches kept off the table's own memory.
#pragma once

#include <bit>
#include <mutex>
#include <shared_mutex>
#include <vector>

#include "map/arguments.hpp"
#include "runtime/lock.hpp"
#include "table/rows.hpp"
#include "table/table.hpp"

namespace tensorhash::table {

using Reading = std::shared_lock<runtime::ReadWriteLock>;
using Writing = std::unique_lock<runtime::ReadWriteLock>;

inline Shape with_rows(std::size_t rows, Shape const& element) {
    Shape shape{static_cast<std::int64_t>(rows)};
    shape.insert(shape.end(), element.begin(), element.end());
    return shape;
}

/// Rows of zeros, a tensor a column.
inline std::vector<Tensor> zero_rows(std::vector<Element> const& elements, std::size_t rows) {
    std::vector<Tensor> zeros;
    for (Element const& element : elements) {
        zeros.push_back(Tensor::zeros(with_rows(rows, element.shape), element.dtype));
    }
    return zeros;
}

inline Located make_located(std::size_t rows) {
    return {Tensor::empty(with_rows(rows, {}), Dtype::Int32),
            Tensor::empty(with_rows(rows, {}), Dtype::Bool)};
}

inline Answers answers(Located& located) {
    return {static_cast<std::uint32_t*>(located.indices.data()),
            static_cast<unsigned char*>(located.mask.data())};
}

inline Tensor column_view(Column const& column, Element const& element, std::uint64_t capacity) {
    return Tensor::borrow(static_cast<void*>(column.block->data()),
                          with_rows(capacity, element.shape), element.dtype, column.block);
}

inline Tensor gathered(Column const& column, Element const& element, Tensor const& indices) {
    auto const rows = static_cast<std::size_t>(indices.size());
    Tensor out = Tensor::empty(with_rows(rows, element.shape), element.dtype);
    gather_rows(static_cast<unsigned char*>(out.data()), column.block->data(), column.row_bytes,
                static_cast<std::uint32_t const*>(indices.data()), rows);
    return out;
}

inline Tensor listed(Table const& table) {
    Tensor indices = Tensor::empty(with_rows(table.size(), {}), Dtype::Int32);
    table.list(static_cast<std::int32_t*>(indices.data()));
    return indices;
}

/// The first `limit` live indices from `begin` on.
inline std::vector<std::int32_t> live_from(std::vector<std::uint64_t> const& live,
                                           std::uint64_t begin, std::uint64_t limit) {
    std::vector<std::int32_t> found;
    for (std::uint64_t word = begin / 64; word < live.size() && found.size() < limit; ++word) {
        std::uint64_t bits = live[word];
        if (word == begin / 64) {
            bits &= ~std::uint64_t{0} << (begin % 64);
        }
        for (; bits != 0 && found.size() < limit; bits &= bits - 1) {
            found.push_back(static_cast<std::int32_t>(
                word * 64 + static_cast<std::uint64_t>(std::countr_zero(bits))));
        }
    }
    return found;
}

inline bool overlaps(Column const& column, Batch const& batch) {
    auto const* const begin = column.block->data();
    return batch.data() < begin + column.block->bytes() &&
           batch.data() + batch.tensor.bytes() > begin;
}

/// A batch that lies in the table's own memory is copied first: written in place, it would change under its reader.
inline void detach_from(Table const& table, Batch& batch) {
    bool shared = overlaps(table.keys(), batch);
    for (Column const& column : table.values()) {
        shared = shared || overlaps(column, batch);
    }
    if (shared) {
        batch.tensor = batch.tensor.clone();
    }
}

}  // namespace tensorhash::table
