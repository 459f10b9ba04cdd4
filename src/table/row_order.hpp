// Applies a batch to its entries on several threads; each entry gets its rows in row order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "runtime/parallel.hpp"
#include "tensorhash/threads.hpp"

namespace tensorhash::table {

/// How many parts in_row_order() should use.
inline std::size_t row_order_parts(std::size_t rows) {
    return rows < runtime::kGrain
               ? 1
               : std::min<std::size_t>(static_cast<std::size_t>(num_threads()), 8);
}

/// Calls body(part, row) for every row. Each part scans all rows in order but takes only its own
/// entries, so that an entry's rows come in row order on any number of threads. Calls prefetch(row)
/// some rows ahead.
template <class Prefetch, class Body>
void in_row_order(std::size_t parts, std::size_t rows, std::uint32_t const* buf_indices,
                  Prefetch&& prefetch, Body&& body) {
    constexpr std::size_t kAhead = 16;
    runtime::run_tasks(parts, [&](std::size_t part) {
        // Sixteen neighbouring entries belong to one part: threads rarely share a cache line.
        auto const is_mine = [&](std::uint32_t buf_index) {
            return (buf_index >> 4) % parts == part;
        };
        for (std::size_t row = 0; row < rows; ++row) {
            if (row + kAhead < rows && is_mine(buf_indices[row + kAhead])) {
                prefetch(row + kAhead);
            }
            if (is_mine(buf_indices[row])) {
                body(part, row);
            }
        }
    });
}

}  // namespace tensorhash::table
