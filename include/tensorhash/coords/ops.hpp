// Operations on integer coordinates [N, 1 + D], the batch in the first column: distinct rows, expanded or strided.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tensorhash/export.hpp"
#include "tensorhash/tensor.hpp"

namespace tensorhash::coords {

/// Distinct rows with batches in ascending order: batch b is rows offsets[b] to offsets[b + 1]. Inside a batch they are in
/// order of first occurrence. Batches may be any integers: where one is negative or 2^24 and more, `offsets` tells of the
/// batches that occur only, and the first column says which they are.
struct BatchedCoords {
    Tensor coords;   ///< [M, 1 + D], the dtype that came in
    Tensor offsets;  ///< int64 [B + 1]
};

/// `coords` and every row plus every of `offsets`, int64 [K, D]: the rows themselves first, then offset by offset.
/// `chunk` offsets are looked up at once; it shows in memory and time only. Without `batches`, the largest batch is the last.
TH_API BatchedCoords expand_coords(Tensor const& coords, Tensor const& offsets,
                                   std::int64_t chunk = 0,
                                   std::optional<std::int64_t> batches = {});

/// Every axis divided by its stride and rounded down.
TH_API BatchedCoords stride_coords(Tensor const& coords, std::vector<std::int64_t> const& stride,
                                   std::optional<std::int64_t> batches = {});

}  // namespace tensorhash::coords
