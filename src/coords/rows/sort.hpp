// A stable parallel radix sort of 64-bit keys that carries row numbers along.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tensorhash::coords {

/// Puts keys[0, count) in ascending order, and rows with them; equal keys keep their order. No key is above `largest`:
/// fewer bits are fewer passes. The lowest `ignored` bits do not count. Needs as much scratch as the two arrays.
void sort_rows(std::uint64_t* keys, std::uint32_t* rows, std::size_t count, std::uint64_t largest,
               int ignored = 0);

}  // namespace tensorhash::coords
