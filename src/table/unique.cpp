// unique(): a table used once. Fresh indices are in order of first occurrence, which is all there is to it.
#include <vector>

#include "runtime/parallel.hpp"
#include "table/arguments.hpp"
#include "table/rows.hpp"
#include "table/table.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash {

Unique unique(Tensor const& array) {
    Element const element = table::element_of(array, "array");
    if (!is_key_dtype(element.dtype)) {
        throw TypeError("array: expected bool, an integer, float32 or float64, got " +
                        std::string(name(element.dtype)));
    }
    std::int64_t const row_elements = num_elements(element.shape);
    if (row_elements > 0) {
        table::check_key_element(element);
    }
    table::Batch const batch = table::check_batch(array, element, "array");
    auto const rows = static_cast<std::int64_t>(batch.rows);
    Unique out;
    out.inverse = Tensor::zeros({rows}, Dtype::Int64);
    auto inverse = out.inverse.as_mutable<std::int64_t>();
    std::vector<std::int64_t> first;
    std::int64_t distinct =
        row_elements == 0 && rows > 0 ? 1 : 0;  // rows without elements are all equal
    if (row_elements > 0) {
        table::Table set(element, {}, 0);
        Tensor numbers = Tensor::empty({rows}, Dtype::Int32);
        Tensor mask = Tensor::empty({rows}, Dtype::Bool);
        auto* const mask_bytes = static_cast<unsigned char*>(mask.data());
        set.activate(batch.data(), batch.rows,
                     {static_cast<std::uint32_t*>(numbers.data()), mask_bytes});
        distinct = static_cast<std::int64_t>(set.size());
        auto const number = numbers.as<std::int32_t>();
        runtime::for_ranges(batch.rows, 1 << 16, [&](std::size_t begin, std::size_t end) {
            for (std::size_t row = begin; row < end; ++row) {
                inverse[row] = number[row];
            }
        });
        Shape shape{distinct};
        shape.insert(shape.end(), element.shape.begin(), element.shape.end());
        out.rows = Tensor::borrow(static_cast<void*>(set.raw_keys().block->data()), shape,
                                  element.dtype, set.raw_keys().block)
                       .clone();
    } else {
        Shape shape = array.shape();
        shape[0] = distinct;
        out.rows = Tensor::empty(shape, element.dtype);
    }
    out.index = Tensor::zeros({distinct}, Dtype::Int64);
    out.counts = Tensor::zeros({distinct}, Dtype::Int64);
    auto index = out.index.as_mutable<std::int64_t>();
    auto counts = out.counts.as_mutable<std::int64_t>();
    for (std::size_t row = batch.rows; row-- > 0;) {
        auto const which = static_cast<std::size_t>(inverse[row]);
        index[which] = static_cast<std::int64_t>(row);
        ++counts[which];
    }
    return out;
}

}  // namespace tensorhash
