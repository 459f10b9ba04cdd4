// Checks and scales the numbers of a neighbour search.
#include "coords/neighbours/search_space.hpp"

#include <algorithm>
#include <limits>
#include <string>

#include "runtime/parallel.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::coords {
namespace {

// An outlier above this would scale ordinary distances so far down that their squares underflow.
constexpr double kLargest = 1e150;

double largest(Points const& points, char const* argument) {
    double most = 0;
    std::size_t outside = 0;
    for (std::size_t i = 0; i < points.rows * points.axes; ++i) {
        double const size = std::abs(points.data()[i]);
        most = std::max(most, size);
        outside += size > kLargest;
    }
    if (outside > 0) {
        throw ValueError(std::string(argument) + ": expected numbers within 1e150, got " +
                         std::to_string(outside) + " beyond");
    }
    return most;
}

void rescale(Points& points, double scale) {
    auto* const data = static_cast<double*>(points.tensor.data());
    runtime::for_ranges(points.rows * points.axes, 1 << 16,
                        [&](std::size_t begin, std::size_t end) {
                            for (std::size_t i = begin; i < end; ++i) data[i] *= scale;
                        });
}

}  // namespace

SearchSpace::SearchSpace(Cloud const& point_cloud, Cloud const& query_cloud)
    : points(to_points(point_cloud.points, "points")),
      queries(to_points(query_cloud.points, "queries")) {
    if (point_cloud.batch) {
        point_batch = to_batch(*point_cloud.batch, "batch");
        query_batch = to_batch(*query_cloud.batch, "query_batch");
    }
    double const most = std::max(largest(points, "points"), largest(queries, "queries"));
    if (most > 0) scale = std::ldexp(1.0, std::min(1000, 500 - std::ilogb(most)));
    rescale(points, scale);
    rescale(queries, scale);
}

Neighbors make_neighbors(std::vector<std::int64_t> const& offsets) {
    return {Tensor::empty({offsets.back()}, Dtype::Int64),
            Tensor::empty({offsets.back()}, Dtype::Float64), Tensor::from(offsets)};
}

void write_neighbors(Neighbors& out, std::size_t at, Candidate const* candidates, std::size_t count,
                     double scale) {
    auto* const indices = static_cast<std::int64_t*>(out.indices.data()) + at;
    auto* const distances = static_cast<double*>(out.distances.data()) + at;
    for (std::size_t i = 0; i < count; ++i) {
        indices[i] = candidates[i].row;
        distances[i] = std::sqrt(candidates[i].squared) / scale;
    }
}

}  // namespace tensorhash::coords
