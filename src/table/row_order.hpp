// Rows of a batch applied to their entries in row order, on several threads, whatever the keys.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "runtime/parallel.hpp"
#include "tensorhash/threads.hpp"

namespace tensorhash::table {

/// Tasks that in_row_order() makes of so many rows.
inline std::size_t row_order_parts(std::size_t rows) {
    return rows < runtime::kGrain
               ? 1
               : std::min<std::size_t>(static_cast<std::size_t>(num_threads()), 8);
}

/// Calls body(part, row) for every row. Each part walks all rows in order but takes only the entries that are its own, so
/// that an entry's rows come in row order on any number of threads. `ask(row)` is called some rows ahead, to prefetch.
template <class Ask, class Body>
void in_row_order(std::size_t parts, std::size_t rows, std::uint32_t const* numbers, Ask&& ask,
                  Body&& body) {
    constexpr std::size_t kAhead = 16;
    runtime::run_tasks(parts, [&](std::size_t part) {
        // Sixteen neighbours go to one task: entries that share a cache line are not torn between threads.
        auto const is_mine = [&](std::uint32_t number) { return (number >> 4) % parts == part; };
        for (std::size_t row = 0; row < rows; ++row) {
            if (row + kAhead < rows && is_mine(numbers[row + kAhead])) {
                ask(row + kAhead);
            }
            if (is_mine(numbers[row])) {
                body(part, row);
            }
        }
    });
}

}  // namespace tensorhash::table
