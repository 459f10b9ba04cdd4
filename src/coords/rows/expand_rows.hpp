// Distinct rows after an expansion or a stride.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "backend/coord_rows.hpp"
#include "tensorhash/coords/types.hpp"

namespace tensorhash::coords {

/// The distinct rows among `coords` and their sums with offsets [K, D], `chunk_rows` sums at a
/// time.
BatchedCoords expand_rows(backend::CoordRows const& coords, std::span<std::int64_t const> offsets,
                          std::size_t chunk_rows, std::optional<std::int64_t> batches);

/// The distinct rows after every axis is divided by its stride and rounded down.
BatchedCoords stride_rows(backend::CoordRows const& coords, std::span<std::int64_t const> stride,
                          std::optional<std::int64_t> batches);

}  // namespace tensorhash::coords
