// The public neighbour searches: arguments in, neighbours out.
#include "tensorhash/coords/neighbours.hpp"

#include <cmath>
#include <string>

#include "coords/api/arguments.hpp"
#include "coords/neighbours/search.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::coords {
namespace {

void check_clouds(Cloud const& points, Cloud const& queries) {
    check_points(points.points, "points");
    check_points(queries.points, "queries");
    std::int64_t const axes = points.points.shape()[1];
    if (axes != queries.points.shape()[1]) {
        throw ValueError("queries: expected " + std::to_string(axes) +
                         " columns, as many as points, got " +
                         std::to_string(queries.points.shape()[1]));
    }
    if (points.batch.has_value() != queries.batch.has_value()) {
        throw ValueError(std::string(points.batch ? "query_batch" : "batch") +
                         ": expected together with " + (points.batch ? "batch" : "query_batch") +
                         ", got none; give both or neither");
    }
    if (points.batch) {
        check_batch_of(*points.batch, points.points.shape()[0], "batch");
        check_batch_of(*queries.batch, queries.points.shape()[0], "query_batch");
    }
}

}  // namespace

Neighbors radius_search(Cloud const& points, Cloud const& queries, double radius,
                        std::optional<std::int64_t> max_neighbors) {
    if (!std::isfinite(radius) || radius < 0) {
        throw ValueError("radius: expected a finite number, 0 or more, got " +
                         std::to_string(radius));
    }
    if (max_neighbors && *max_neighbors < 0) {
        throw ValueError("max_neighbors: expected 0 or more, got " +
                         std::to_string(*max_neighbors));
    }
    check_clouds(points, queries);
    return coords_backend(points.points.device()).radius({points, queries, radius, max_neighbors});
}

// Calls the CPU directly: no device will have a k-d tree, so CoordsBackend has no such function.
Neighbors knn_search(Cloud const& points, Cloud const& queries, std::int64_t k) {
    if (k < 0) {
        throw ValueError("k: expected 0 or more, got " + std::to_string(k));
    }
    check_clouds(points, queries);
    return find_nearest(points, queries, k);
}

}  // namespace tensorhash::coords
