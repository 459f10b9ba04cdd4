// The public NeighborIndex: arguments in, neighbours out.
#include "tensorhash/geometry/neighbor_index.hpp"

#include "coords/api/arguments.hpp"
#include "coords/neighbours/point_index.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::geometry {
namespace {

void check_cloud(coords::Cloud const& points) {
    coords::check_points(points.points, "points");
    if (points.batch) coords::check_batch_of(*points.batch, points.points.shape()[0], "batch");
}

}  // namespace

struct NeighborIndex::Impl {
    explicit Impl(coords::Cloud const& points) : index(points) {}

    void check(std::optional<coords::Cloud> const& queries) const {
        if (!queries) return;
        coords::check_points(queries->points, "queries");
        coords::check_axes(queries->points, static_cast<std::int64_t>(index.axes()));
        if (queries->batch.has_value() != index.has_batch()) {
            throw ValueError(index.has_batch()
                                 ? "query_batch: expected one, because the points have a batch, "
                                   "got none"
                                 : "query_batch: expected none, because the points have no batch, "
                                   "got one");
        }
        if (queries->batch) {
            coords::check_batch_of(*queries->batch, queries->points.shape()[0], "query_batch");
        }
    }

    coords::PointIndex index;
};

NeighborIndex::NeighborIndex(coords::Cloud const& points) {
    check_cloud(points);
    impl_ = std::make_unique<Impl>(points);
}
NeighborIndex::NeighborIndex(NeighborIndex&&) noexcept = default;
NeighborIndex& NeighborIndex::operator=(NeighborIndex&&) noexcept = default;
NeighborIndex::~NeighborIndex() = default;

coords::Neighbors NeighborIndex::radius(double radius, std::optional<coords::Cloud> const& queries,
                                        std::optional<std::int64_t> max_neighbors) const {
    coords::check_radius(radius, max_neighbors);
    impl_->check(queries);
    return impl_->index.within(queries, radius, max_neighbors);
}

coords::Neighbors NeighborIndex::knn(std::int64_t k,
                                     std::optional<coords::Cloud> const& queries) const {
    coords::check_at_least_zero(k, "k");
    impl_->check(queries);
    return impl_->index.nearest(queries, k);
}

std::int64_t NeighborIndex::size() const noexcept {
    return static_cast<std::int64_t>(impl_->index.size());
}
std::int64_t NeighborIndex::axes() const noexcept {
    return static_cast<std::int64_t>(impl_->index.axes());
}

}  // namespace tensorhash::geometry
