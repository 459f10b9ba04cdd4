// HashMap::from_parts: a table made from entries with given buffer indices.
#include <algorithm>
#include <string>
#include <vector>

#include "map/map_impl.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash {

using map::CheckedBatch;

namespace {

/// int32 [rows], a copy: the caller's array may change after the check.
Tensor check_places(Tensor const& buf_indices, std::size_t rows) {
    CheckedBatch const places =
        map::check_batch(buf_indices, Element{Dtype::Int32, {}}, "buf_indices", rows);
    return places.tensor.clone().reshape(with_rows(places.rows, {}));
}

/// One more than the largest index.
std::int32_t top_of(std::span<std::int32_t const> indices) {
    std::int32_t top = 0;
    for (std::int32_t const index : indices) {
        if (index < 0 || index == INT32_MAX) {
            throw ValueError("buf_indices: expected 0 to " + std::to_string(INT32_MAX - 1) +
                             ", got " + std::to_string(index));
        }
        top = std::max(top, index + 1);
    }
    return top;
}

/// The indices below `top` that are not listed, as a stack that reuses the lowest first.
std::vector<std::uint32_t> gaps_of(std::span<std::int32_t const> indices, std::int32_t top) {
    std::vector<unsigned char> taken(static_cast<std::size_t>(top), 0);
    for (std::int32_t const index : indices) {
        if (taken[static_cast<std::size_t>(index)]++ != 0) {
            throw ValueError("buf_indices: " + std::to_string(index) + " is listed twice");
        }
    }
    std::vector<std::uint32_t> free;
    free.reserve(taken.size() - indices.size());
    for (std::size_t i = taken.size(); i-- > 0;) {
        if (taken[i] == 0) {
            free.push_back(static_cast<std::uint32_t>(i));
        }
    }
    return free;
}

}  // namespace

HashMap HashMap::from_parts(Tensor const& keys, std::vector<Tensor> const& values,
                            Tensor const& buf_indices) {
    Element const key = map::element_of(keys, "keys");
    std::vector<Element> const elements = map::elements_of(values);
    std::vector<Tensor> columns;
    for (Tensor const& column : values) {
        columns.push_back(column.to(Device{}));
    }
    map::KeysAndValues const batch =
        map::check_keys_and_values(keys.to(Device{}), key, columns, elements);
    Tensor const places = check_places(buf_indices.to(Device{}), batch.keys.rows);
    auto const indices = places.as<std::int32_t>();
    std::int32_t const top = top_of(indices);
    HashMap made(Capacity{top}, key, elements, keys.device());
    std::vector<std::uint32_t> const free = gaps_of(indices, top);
    backend::TableImage image;
    image.capacity = static_cast<std::uint64_t>(top);
    image.top = static_cast<std::uint32_t>(top);
    image.free = free;
    image.rows = batch.keys.rows;
    image.keys = batch.keys.data();
    for (CheckedBatch const& column : batch.values) {
        image.values.push_back(column.data());
    }
    image.indices = reinterpret_cast<std::uint32_t const*>(indices.data());
    try {
        made.impl_->table->from_cpu(image);
    } catch (CorruptTable const& error) {
        throw ValueError("keys: expected distinct keys; " + std::string(error.what()));
    }
    return made;
}

}  // namespace tensorhash
