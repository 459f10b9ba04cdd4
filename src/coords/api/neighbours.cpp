// The public neighbour searches: arguments in, neighbours out.
#include "tensorhash/coords/neighbours.hpp"

#include <string>
#include <utility>

#include "coords/api/arguments.hpp"
#include "coords/neighbours/search.hpp"
#include "map/results.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::coords {
namespace {

/// The clouds of a search on one device.
struct Clouds {
    Cloud points;
    Cloud queries;
};

Clouds take_clouds(Cloud const& points, Cloud const& queries, Device device) {
    Clouds own{{take_points(points.points, "points", device)},
               {take_points(queries.points, "queries", device)}};
    check_axes(queries.points, points.points.shape()[1]);
    if (points.batch.has_value() != queries.batch.has_value()) {
        throw ValueError(std::string(points.batch ? "query_batch" : "batch") +
                         ": expected together with " + (points.batch ? "batch" : "query_batch") +
                         ", got none; give both or neither");
    }
    own.points.batch = take_batch(points.batch, points.points.shape()[0], "batch", device);
    own.queries.batch = take_batch(queries.batch, queries.points.shape()[0], "query_batch", device);
    return own;
}

void mark_read(Cloud const& cloud) {
    coords::mark_read(cloud.points);
    if (cloud.batch) coords::mark_read(*cloud.batch);
}

}  // namespace

Neighbors radius_search(Cloud const& points, Cloud const& queries, double radius,
                        std::optional<std::int64_t> max_neighbors) {
    check_radius(radius, max_neighbors);
    Device const device = device_of(points.points, "points");
    Clouds const own = take_clouds(points, queries, device);
    Neighbors found =
        coords_backend(device).radius({own.points, own.queries, radius, max_neighbors});
    mark_read(own.points);
    mark_read(own.queries);
    return {map::deliver(std::move(found.indices), device),
            map::deliver(std::move(found.distances), device),
            map::deliver(std::move(found.offsets), device)};
}

// Calls the CPU directly: no device will have a k-d tree, so CoordsBackend has no such function.
Neighbors knn_search(Cloud const& points, Cloud const& queries, std::int64_t k) {
    check_at_least_zero(k, "k");
    Clouds const own = take_clouds(points, queries, Device{});
    return find_nearest(own.points, own.queries, k);
}

}  // namespace tensorhash::coords
