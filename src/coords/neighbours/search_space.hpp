// What both neighbour searches begin with: checked points and queries on one scale, and where the answers go.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "coords/neighbours/points.hpp"
#include "tensorhash/coords/neighbours.hpp"

namespace tensorhash::coords {

/// Points and queries times a power of two that keeps every square within float64: distances are those of the
/// unscaled numbers to the last bit, and neither huge nor tiny ones are lost. Below 2^-1011 of the largest coordinate
/// squares underflow all the same: no scale holds both.
struct SearchSpace {
    SearchSpace(Cloud const& point_cloud, Cloud const& query_cloud);

    std::size_t axes() const noexcept { return points.axes; }
    std::int64_t const* batch_of_points() const noexcept { return batch_data(point_batch); }
    std::int64_t const* batch_of_queries() const noexcept { return batch_data(query_batch); }

    Points points;
    Points queries;
    std::optional<Tensor> point_batch;
    std::optional<Tensor> query_batch;
    double scale = 1;

private:
    static std::int64_t const* batch_data(std::optional<Tensor> const& batch) noexcept {
        return batch ? static_cast<std::int64_t const*>(batch->data()) : nullptr;
    }
};

/// A neighbour under way: nearer first, of equally near ones the lower row.
struct Candidate {
    double squared;
    std::uint32_t row;

    friend bool operator<(Candidate const& a, Candidate const& b) noexcept {
        return a.squared < b.squared || (a.squared == b.squared && a.row < b.row);
    }
};

/// Axis by axis in order, so that a bound of a box is never above the distance to a point in it.
inline double squared_distance(double const* a, double const* b, std::size_t axes) noexcept {
    double sum = 0;
    for (std::size_t axis = 0; axis < axes; ++axis) {
        double const difference = a[axis] - b[axis];
        sum += difference * difference;
    }
    return sum;
}

/// Results of `offsets.back()` entries, to be filled.
Neighbors make_neighbors(std::vector<std::int64_t> const& offsets);

/// Writes candidates, scaled back, from entry `at` on.
void write_neighbors(Neighbors& out, std::size_t at, Candidate const* candidates, std::size_t count,
                     double scale);

}  // namespace tensorhash::coords
