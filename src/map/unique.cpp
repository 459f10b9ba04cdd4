// unique(): checks arguments; the back end finds the distinct rows.
#include "tensorhash/unique.hpp"

#include <algorithm>
#include <string>

#include "backend/loader.hpp"
#include "map/results.hpp"
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

/// Calls change(tensor) for each part.
template <class Change>
Unique apply(Unique unique, Change const& change) {
    for (Tensor* const part : {&unique.rows, &unique.index, &unique.inverse, &unique.counts}) {
        change(*part);
    }
    return unique;
}

}  // namespace

Unique unique(Tensor const& array, UniqueParts parts) {
    Device const device = array.device();
    Element const element = map::element_of(array, "array");
    if (!is_key_dtype(element.dtype)) {
        throw TypeError("array: expected bool, an integer, float32 or float64, got " +
                        std::string(name(element.dtype)));
    }
    if (num_elements(element.shape) == 0) {
        (void)map::check_batch(array, element, "array", device);
        return apply(unique_of_nothing(array, parts),
                     [&](Tensor& part) { part = part.to(device); });
    }
    map::check_key_element(element);
    map::CheckedBatch const batch = map::check_batch(array, element, "array", device);
    Unique found = backend::backend_for(device, "array")
                       .unique({batch.data(), batch.rows}, element, parts, device);
    batch.tensor.read_by(current_stream(device));
    return apply(std::move(found),
                 [&](Tensor& part) { part = map::deliver(std::move(part), device); });
}

}  // namespace tensorhash
