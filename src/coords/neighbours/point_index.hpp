// A cloud that is searched many times: its tree is built on first use and kept.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "coords/neighbours/point_tree.hpp"
#include "coords/neighbours/search_space.hpp"
#include "tensorhash/coords/types.hpp"

namespace tensorhash::coords {

/// Results are those of the functions in search.hpp. Many threads may search at once. The caller
/// checks dtypes and shapes.
class PointIndex {
public:
    explicit PointIndex(Cloud const& cloud);

    std::size_t size() const noexcept { return cloud_.rows(); }
    std::size_t axes() const noexcept { return cloud_.points.axes; }
    bool has_batch() const noexcept { return cloud_.batch.has_value(); }

    /// Without queries, the points themselves.
    Neighbors within(std::optional<Cloud> const& queries, double radius,
                     std::optional<std::int64_t> max_neighbors) const;
    Neighbors nearest(std::optional<Cloud> const& queries, std::int64_t k) const;

private:
    PointIndex(SearchCloud cloud, double scale);
    /// The same points on a scale that also fits the queries.
    PointIndex widened(double largest) const;
    std::shared_ptr<PointTree const> tree() const;

    SearchCloud cloud_;
    double scale_;
    mutable std::mutex mutex_;  // guards the pointer
    mutable std::shared_ptr<PointTree const> tree_;
};

}  // namespace tensorhash::coords
