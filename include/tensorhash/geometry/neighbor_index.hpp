// NeighborIndex: a cloud of points that is built once and searched many times.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "tensorhash/coords/types.hpp"
#include "tensorhash/export.hpp"

namespace tensorhash::geometry {

/// A copy of the points and a search tree, built on first use. Results are those of
/// radius_search() and knn_search(), on any number of threads. Without queries, every point is a
/// query. Many threads may search at once.
class TH_API NeighborIndex {
public:
    explicit NeighborIndex(coords::Cloud const& points);
    NeighborIndex(NeighborIndex&&) noexcept;
    NeighborIndex& operator=(NeighborIndex&&) noexcept;
    ~NeighborIndex();

    /// Every point at a distance of at most `radius`; with `max_neighbors` only the nearest ones.
    coords::Neighbors radius(double radius, std::optional<coords::Cloud> const& queries = {},
                             std::optional<std::int64_t> max_neighbors = {}) const;
    /// The k nearest points, or all points if there are fewer than k.
    coords::Neighbors knn(std::int64_t k, std::optional<coords::Cloud> const& queries = {}) const;

    std::int64_t size() const noexcept;
    std::int64_t axes() const noexcept;

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace tensorhash::geometry
