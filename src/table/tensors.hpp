// What tables give out, as tensors: shapes with rows in front, views of buffers, gathered rows.
#pragma once

#include "table/rows.hpp"
#include "table/table.hpp"
#include "tensorhash/tensor.hpp"

namespace tensorhash::table {

/// [rows, *element].
inline Shape with_rows(std::size_t rows, Shape const& element) {
    Shape shape{static_cast<std::int64_t>(rows)};
    shape.insert(shape.end(), element.begin(), element.end());
    return shape;
}

/// The whole buffer, shared.
inline Tensor column_view(Column const& column, Element const& element, std::uint64_t capacity) {
    return Tensor::borrow(static_cast<void*>(column.block->data()),
                          with_rows(capacity, element.shape), element.dtype, column.block);
}

/// A copy of the rows at `indices`, int32 [n].
inline Tensor gathered(Column const& column, Element const& element, Tensor const& indices) {
    auto const rows = static_cast<std::size_t>(indices.size());
    Tensor out = Tensor::empty(with_rows(rows, element.shape), element.dtype);
    gather_rows(static_cast<unsigned char*>(out.data()), column.block->data(), column.row_bytes,
                static_cast<std::uint32_t const*>(indices.data()), rows);
    return out;
}

}  // namespace tensorhash::table
