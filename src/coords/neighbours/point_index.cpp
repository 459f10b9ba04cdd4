// Builds the tree on first use.
#include "coords/neighbours/point_index.hpp"

#include <algorithm>
#include <utility>

#include "coords/neighbours/search.hpp"

namespace tensorhash::coords {
namespace {

// Queries may lie this many times farther out than all points: the squares still fit float64.
constexpr double kRoom = 16;

}  // namespace

PointIndex::PointIndex(Cloud const& cloud)
    : cloud_(cloud, "points", "batch"), scale_(search_scale(cloud_.largest)) {
    cloud_.multiply(scale_);
}

PointIndex::PointIndex(SearchCloud cloud, double scale) : cloud_(std::move(cloud)), scale_(scale) {}

std::shared_ptr<PointTree const> PointIndex::tree() const {
    {
        std::lock_guard const lock(mutex_);
        if (tree_) return tree_;
    }
    auto made = std::make_shared<PointTree const>(cloud_);
    std::lock_guard const lock(mutex_);
    if (!tree_) tree_ = std::move(made);  // another thread may have been faster
    return tree_;
}

PointIndex PointIndex::widened(double largest) const {
    SearchCloud cloud = cloud_;
    cloud.points.tensor = cloud.points.tensor.clone();
    cloud.largest = std::max(largest, cloud.largest);
    double const scale = search_scale(cloud.largest);
    cloud.multiply(scale / scale_);
    return PointIndex(std::move(cloud), scale);
}

Neighbors PointIndex::within(std::optional<Cloud> const& queries, double radius,
                             std::optional<std::int64_t> max_neighbors) const {
    if (!queries) {
        return find_within(*tree(), cloud_, scale_, radius, max_neighbors);
    }
    SearchCloud cloud(*queries, "queries", "query_batch");
    if (cloud.largest > kRoom * cloud_.largest) {
        return widened(cloud.largest).within(queries, radius, max_neighbors);
    }
    cloud.multiply(scale_);
    return find_within(*tree(), cloud, scale_, radius, max_neighbors);
}

Neighbors PointIndex::nearest(std::optional<Cloud> const& queries, std::int64_t k) const {
    if (!queries) return find_nearest(*tree(), cloud_, scale_, k);
    SearchCloud cloud(*queries, "queries", "query_batch");
    if (cloud.largest > kRoom * cloud_.largest) return widened(cloud.largest).nearest(queries, k);
    cloud.multiply(scale_);
    return find_nearest(*tree(), cloud, scale_, k);
}

}  // namespace tensorhash::coords
