// The neighbour searches on the CPU. They check numbers; the caller checks dtypes and shapes.
#pragma once

#include <cstdint>

#include "backend/coords_backend.hpp"
#include "tensorhash/coords/types.hpp"

namespace tensorhash::coords {

/// All points within a radius of each query.
Neighbors find_within(backend::RadiusRequest const& request);

/// The k nearest points of each query.
Neighbors find_nearest(Cloud const& points, Cloud const& queries, std::int64_t k);

}  // namespace tensorhash::coords
