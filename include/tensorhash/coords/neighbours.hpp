// Neighbours of points: all within a radius, or the k nearest. Exact, nearest first, the same on any number of threads.
#pragma once

#include <cstdint>
#include <optional>

#include "tensorhash/export.hpp"
#include "tensorhash/tensor.hpp"

namespace tensorhash::coords {

/// Row by row: the neighbours of query q are entries offsets[q] to offsets[q + 1] of the other two, nearest first, of
/// equally near ones the lower row first.
struct Neighbors {
    Tensor indices;    ///< int64 [P]: rows of the points
    Tensor distances;  ///< float64 [P]
    Tensor offsets;    ///< int64 [M + 1]
};

/// A cloud of points [N, D] of any real dtype; with `batch`, int64 [N], points and queries of different batches never meet.
struct Cloud {
    Tensor points;
    std::optional<Tensor> batch = {};
};

/// Every point at a distance of at most `radius`, a point equal to the query too; with `max_neighbors`, the nearest so
/// many. Distances are those of float64 arithmetic.
TH_API Neighbors radius_search(Cloud const& points, Cloud const& queries, double radius,
                               std::optional<std::int64_t> max_neighbors = {});

/// The k nearest points; all of them where there are fewer.
TH_API Neighbors knn_search(Cloud const& points, Cloud const& queries, std::int64_t k);

}  // namespace tensorhash::coords
