// Expansion by blocks of bits: needs little memory beside the result.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "coords/rows/distinct_rows.hpp"

namespace tensorhash::coords {

/// The distinct rows among `rows` and their sums with offsets [K, D]. No sum leaves the dtype.
/// Returns nothing for rows that need the general way: none, more than three axes, repeated rows,
/// a very large box or widely scattered offsets. Otherwise the result may take over the memory of
/// `rows`.
std::optional<BatchedCoords> expand_by_blocks(BatchedRows& rows,
                                              std::span<std::int64_t const> offsets);

}  // namespace tensorhash::coords
