// The clouds of a neighbour search on one scale, and the arrays of its result.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "backend/points.hpp"
#include "coords/neighbours/points.hpp"
#include "cpu/tree_engine.hpp"
#include "tensorhash/coords/types.hpp"

namespace tensorhash::coords {

/// The points or the queries of a search, in a copy of their own.
struct SearchCloud {
    /// The names are for messages.
    SearchCloud(Cloud const& cloud, char const* argument, char const* batch_argument);

    std::size_t rows() const noexcept { return points.rows; }
    /// The batch of each row, or null.
    std::int64_t const* batches() const noexcept {
        return batch ? static_cast<std::int64_t const*>(batch->data()) : nullptr;
    }
    void multiply(double factor);

    Points points;
    std::optional<Tensor> batch;
    double largest = 0;  // of the coordinates, before any multiply()
};

using backend::search_scale;

/// Points and queries on one scale.
struct SearchSpace {
    SearchSpace(Cloud const& point_cloud, Cloud const& query_cloud);

    SearchCloud points;
    SearchCloud queries;
    double scale;
};

using cpu::Candidate;

/// Adds the axes in order, so that the bound of a box is never above the distance to a point in it.
inline double squared_distance(double const* a, double const* b, std::size_t axes) noexcept {
    if (axes == 3) {  // the same sum without a loop
        double const x = a[0] - b[0];
        double const y = a[1] - b[1];
        double const z = a[2] - b[2];
        return x * x + y * y + z * z;
    }
    double sum = 0;
    for (std::size_t axis = 0; axis < axes; ++axis) {
        double const difference = a[axis] - b[axis];
        sum += difference * difference;
    }
    return sum;
}

/// Allocates a result of `offsets.back()` entries.
Neighbors make_neighbors(std::vector<std::int64_t> const& offsets);

/// Writes candidates from entry `at` on, with their distances unscaled.
void write_neighbors(Neighbors& out, std::size_t at, Candidate const* candidates, std::size_t count,
                     double scale);

}  // namespace tensorhash::coords
