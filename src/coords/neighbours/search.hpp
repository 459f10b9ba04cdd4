// The neighbour searches on the CPU. They check numbers; the caller checks dtypes and shapes.
#pragma once

#include <cstdint>
#include <optional>

#include "backend/coords_backend.hpp"
#include "coords/neighbours/point_tree.hpp"
#include "tensorhash/coords/types.hpp"

namespace tensorhash::coords {

/// All points within a radius of each query.
Neighbors find_within(backend::RadiusRequest const& request);
/// The same with a tree that is there: its points and the queries are multiplied by `scale`.
Neighbors find_within(PointTree const& tree, SearchCloud const& queries, double scale,
                      double radius, std::optional<std::int64_t> max_neighbors);

/// The k nearest points of each query.
Neighbors find_nearest(Cloud const& points, Cloud const& queries, std::int64_t k);
/// The same with a tree that is there.
Neighbors find_nearest(PointTree const& tree, SearchCloud const& queries, double scale,
                       std::int64_t k);

}  // namespace tensorhash::coords
