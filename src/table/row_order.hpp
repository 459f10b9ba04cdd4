// Applies a batch to its entries on several threads; each entry gets its rows in row order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "runtime/parallel.hpp"
#include "runtime/wanted_rows.hpp"
#include "tensorhash/threads.hpp"

namespace tensorhash::table {

/// How many parts in_row_order() should use.
inline std::size_t row_order_parts(std::size_t rows) {
    return rows < runtime::kGrain
               ? 1
               : std::min<std::size_t>(static_cast<std::size_t>(num_threads()), 8);
}

/// The part of an entry. Sixteen neighbouring entries belong to one part, so that threads rarely
/// share a cache line. A product instead of a remainder, which takes ten times as long.
inline std::size_t row_order_part(std::uint32_t buf_index, std::size_t parts) {
    std::uint32_t const mixed = (buf_index >> 4) * 0x9e3779b9u;
    return std::size_t{mixed >> 16} * parts >> 16;
}

/// Calls body(part, row) for every row. Each part scans all rows in order but takes only its own
/// entries, so that an entry's rows come in row order on any number of threads. Calls prefetch(row)
/// some rows ahead.
template <class Prefetch, class Body>
void in_row_order(std::size_t parts, std::size_t rows, std::uint32_t const* buf_indices,
                  Prefetch&& prefetch, Body&& body) {
    constexpr std::size_t kAhead = 16;
    if (parts > 1) {
        runtime::run_tasks(parts, [&](std::size_t part) {
            auto const is_mine = [&](std::size_t row) {
                return row_order_part(buf_indices[row], parts) == part;
            };
            runtime::for_wanted_rows<kAhead>(0, rows, is_mine, prefetch,
                                             [&](std::size_t row) { body(part, row); });
        });
        return;
    }
    for (std::size_t row = 0; row < rows; ++row) {
        if (row + kAhead < rows) prefetch(row + kAhead);
        body(std::size_t{0}, row);
    }
}

}  // namespace tensorhash::table
