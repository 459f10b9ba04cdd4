// Neighbours of points: all within a radius, or the k nearest. Exact, nearest first, the same on
// any number of threads.
#pragma once

#include <cstdint>
#include <optional>

#include "tensorhash/coords/types.hpp"
#include "tensorhash/export.hpp"

namespace tensorhash::coords {

/// Every point at a distance of at most `radius`, including points equal to the query. With
/// `max_neighbors`, at most that many, the nearest ones. Distances are computed in float64.
TH_API Neighbors radius_search(Cloud const& points, Cloud const& queries, double radius,
                               std::optional<std::int64_t> max_neighbors = {});

/// The k nearest points, or all points if there are fewer than k.
TH_API Neighbors knn_search(Cloud const& points, Cloud const& queries, std::int64_t k);

}  // namespace tensorhash::coords
