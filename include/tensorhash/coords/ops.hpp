// Operations on integer coordinates [N, 1 + D], the batch in the first column: distinct rows,
// expanded or strided.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tensorhash/coords/types.hpp"
#include "tensorhash/export.hpp"

namespace tensorhash::coords {

/// The distinct rows among `coords` and all sums of a row and an offset, int64 [K, D]: first the
/// rows themselves, then offset by offset. `chunk` is the number of offsets that are looked up at
/// once; it changes only memory and time. Without `batches`, the largest batch is the last.
TH_API BatchedCoords expand_coords(Tensor const& coords, Tensor const& offsets,
                                   std::int64_t chunk = 0,
                                   std::optional<std::int64_t> batches = {});

/// The distinct rows after every axis is divided by its stride and rounded down.
TH_API BatchedCoords stride_coords(Tensor const& coords, std::vector<std::int64_t> const& stride,
                                   std::optional<std::int64_t> batches = {});

}  // namespace tensorhash::coords
