// Moving rows of bytes between batches and buffers, in parallel.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tensorhash::table {

/// to[numbers[i]] = from[i] for the rows of the mask; numbers of those are distinct.
void scatter_rows(unsigned char* to, unsigned char const* from, std::size_t row_bytes,
                  std::uint32_t const* numbers, unsigned char const* mask, std::size_t rows);

/// to[i] = from[numbers[i]]; where the number is -1, the row of `missing`, which steps by missing_step bytes (0: one
/// row for all), or zeros if it is null.
void gather_rows(unsigned char* to, unsigned char const* from, std::size_t row_bytes,
                 std::uint32_t const* numbers, std::size_t rows,
                 unsigned char const* missing = nullptr, std::size_t missing_step = 0);

/// to[places[i]] = from[numbers[i]], places distinct; where the number is -1, row places[i] of `missing`, or zeros.
void gather_to(unsigned char* to, std::uint32_t const* places, unsigned char const* from,
               std::size_t row_bytes, std::uint32_t const* numbers, std::size_t rows,
               unsigned char const* missing, std::size_t missing_step);

}  // namespace tensorhash::table
