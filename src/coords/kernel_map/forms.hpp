// Other forms of a kernel map: transposed, as a table, as a mask, by out row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tensorhash/coords/kernel_map.hpp"

namespace tensorhash::coords {

/// A checked map: every number is in range, every group ascends by out row.
struct CheckedMap {
    Tensor in_tensor;
    Tensor out_tensor;
    std::span<std::int32_t const> in;
    std::span<std::int32_t const> out;
    std::vector<std::int64_t> offsets;  // a copy that the caller cannot change after the check
    std::int64_t num_in = 0;
    std::int64_t num_out = 0;
    std::size_t groups() const { return offsets.size() - 1; }
};
/// Throws ValueError if the caller has changed the map so that it is no longer valid.
CheckedMap check_map(KernelMap const& map);
/// The error of such a map.
[[noreturn]] void fail_map(std::string const& what);

/// Writes the pairs with in and out exchanged, every group ascending by its new out row.
void exchange_groups(CheckedMap const& map, std::int32_t* in_maps, std::int32_t* out_maps);

/// Writes int32 [K, num_out]: the in row of each offset and out row, or -1. False if an offset
/// joins an out row with two in rows.
bool fill_pair_table(CheckedMap const& map, std::int32_t* table);

/// Sets bit k % 32 of word k / 32 for every out row with a pair of offset k. `bits` must be zeros.
void fill_pair_mask(CheckedMap const& map, std::size_t words, std::uint32_t* bits);

/// The out rows that have pairs, their offsets, and for every out row the place of its first pair.
struct RowPlaces {
    std::vector<std::int32_t> out_rows;
    std::vector<std::int64_t> offsets;  // [out_rows + 1]
    std::vector<std::int64_t> next;     // [num_out]
};
RowPlaces count_pairs_of_rows(CheckedMap const& map);
/// Writes the in rows by out row, then by offset, and advances `next`.
void write_pairs_by_row(CheckedMap const& map, std::vector<std::int64_t>& next, std::int32_t* in);

}  // namespace tensorhash::coords
