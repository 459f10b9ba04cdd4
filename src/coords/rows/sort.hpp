// A stable parallel radix sort of 64-bit keys that moves row numbers with them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tensorhash::coords {

/// Sorts keys[0, count) in ascending order and moves rows with them; equal keys keep their order.
/// No key may be above `largest`; a smaller bound saves passes. Ignores the lowest `ignored` bits.
/// Needs scratch memory of the size of both arrays.
void sort_rows(std::uint64_t* keys, std::uint32_t* rows, std::size_t count, std::uint64_t largest,
               int ignored = 0);

}  // namespace tensorhash::coords
