// The neighbour searches on the CPU. They check numbers; the caller checks dtypes and shapes.
#pragma once

#include <cstdint>
#include <optional>

#include "backend/coords_backend.hpp"
#include "coords/neighbours/cell_grid.hpp"
#include "coords/neighbours/kd_tree.hpp"
#include "tensorhash/coords/types.hpp"

namespace tensorhash::coords {

/// All points within a radius of each query.
Neighbors find_within(backend::RadiusRequest const& request);
/// The same with a grid that is there: its reach is that of scaled_radius(radius, scale), and its
/// points and the queries are multiplied by `scale`.
Neighbors find_within(CellGrid const& cells, SearchCloud const& queries, double scale,
                      double radius, std::optional<std::int64_t> max_neighbors);
double scaled_radius(double radius, double scale) noexcept;

/// The k nearest points of each query.
Neighbors find_nearest(Cloud const& points, Cloud const& queries, std::int64_t k);
/// The same with a tree that is there.
Neighbors find_nearest(KdTree const& tree, SearchCloud const& queries, double scale,
                       std::int64_t k);

}  // namespace tensorhash::coords
