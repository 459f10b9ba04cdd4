// unique(): checks arguments; the back end finds the distinct rows.
#include "tensorhash/unique.hpp"

#include <algorithm>
#include <string>

#include "backend/loader.hpp"
#include "map/arguments.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash {
namespace {

/// Rows without elements are all equal.
Unique unique_of_nothing(Tensor const& array, UniqueParts parts) {
    std::int64_t const rows = array.shape()[0];
    std::int64_t const distinct = std::min<std::int64_t>(rows, 1);
    Shape shape = array.shape();
    shape[0] = distinct;
    Unique out;
    out.rows = Tensor::empty(shape, array.dtype());
    out.index = Tensor::zeros({parts.index ? distinct : 0}, Dtype::Int64);
    out.inverse = Tensor::zeros({parts.inverse ? rows : 0}, Dtype::Int64);
    out.counts = Tensor::zeros({parts.counts ? distinct : 0}, Dtype::Int64);
    if (parts.counts && distinct > 0) {
        out.counts.as_mutable<std::int64_t>()[0] = rows;
    }
    return out;
}

}  // namespace

Unique unique(Tensor const& array, UniqueParts parts) {
    Element const element = map::element_of(array, "array");
    if (!is_key_dtype(element.dtype)) {
        throw TypeError("array: expected bool, an integer, float32 or float64, got " +
                        std::string(name(element.dtype)));
    }
    if (num_elements(element.shape) == 0) {
        (void)map::check_batch(array, element, "array");
        return unique_of_nothing(array, parts);
    }
    map::check_key_element(element);
    map::CheckedBatch const batch = map::check_batch(array, element, "array");
    return backend::backend_for(array.device(), "array")
        .unique({batch.data(), batch.rows}, element, parts);
}

}  // namespace tensorhash
