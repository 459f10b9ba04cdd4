// The distinct rows of an array on a device: they are the keys of a scratch table, and its buffer
// indices are in order of first occurrence.
#pragma once

#include <cstdint>

#include "device/core.hpp"
#include "device/keys.hpp"
#include "device/values.hpp"
#include "runtime/seed.hpp"
#include "tensor/shapes.hpp"
#include "tensorhash/unique.hpp"

namespace tensorhash::device {

/// The rows with a set mask, in order, as int64.
template <class Queue>
void list_first_rows(Queue& queue, Array<Queue, unsigned char> const& mask, std::uint64_t distinct,
                     std::int64_t* out) {
    std::uint64_t const rows = mask.size();
    MaskIs const is_first{mask.data(), 1};
    Array<Queue, std::uint32_t> ranks(queue, segments_of(rows));
    Array<Queue, std::uint32_t> listed(queue, distinct);
    queue.launch(rows, CountChosen<MaskIs>{is_first, 0, rows, ranks.data()});
    queue.scan(ranks.data(), ranks.size(), static_cast<std::uint32_t*>(nullptr));
    queue.launch(rows,
                 ListChosen<MaskIs>{is_first, 0, rows, ranks.data(), distinct, listed.data()});
    queue.launch(distinct, WidenRows{listed.data(), out, distinct});
}

/// Waits once, for the number of distinct rows.
template <class Queue>
Unique unique_rows(Queue& queue, backend::KeyRows const& keys, Element const& element,
                   UniqueParts parts, Device device) {
    std::uint32_t const rows = to_rows(keys.rows);
    Array<Queue, unsigned char> copy;
    Core<Queue> table(queue, format_of(element), rows, runtime::new_seed());
    Array<Queue, std::uint32_t> indices(queue, rows);
    Array<Queue, unsigned char> mask(queue, rows);
    table.insert(aligned_keys(queue, keys, format_of(element), copy), rows,
                 {indices.data(), mask.data()});
    std::uint64_t const distinct = table.read_state().top;

    auto const numbers = [&](std::uint64_t size) {
        return Tensor::empty(with_rows(size, {}), Dtype::Int64, device);
    };
    auto const words = [](Tensor& tensor) { return static_cast<std::int64_t*>(tensor.data()); };
    Unique unique;
    unique.rows = Tensor::empty(with_rows(distinct, element.shape), element.dtype, device);
    queue.copy(unique.rows.data(), table.buffers().keys.data(), unique.rows.bytes(), Copy::Within);
    if (parts.index) {
        unique.index = numbers(distinct);
        list_first_rows(queue, mask, distinct, words(unique.index));
    }
    if (parts.inverse) {
        unique.inverse = numbers(rows);
        queue.launch(rows, WidenRows{indices.data(), words(unique.inverse), rows});
    }
    if (parts.counts) {
        unique.counts = numbers(distinct);
        queue.fill(unique.counts.data(), 0, unique.counts.bytes());
        auto* const counts = reinterpret_cast<std::uint64_t*>(words(unique.counts));
        queue.launch(rows, CountEntries{indices.data(), counts, rows});
    }
    return unique;
}

}  // namespace tensorhash::device
