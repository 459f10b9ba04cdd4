// Checks and scales the numbers of a neighbour search.
#include "coords/neighbours/search_space.hpp"

#include <algorithm>
#include <atomic>

#include "runtime/parallel.hpp"

namespace tensorhash::coords {
namespace {

double largest_of(Points const& points, char const* argument) {
    auto const chunks = runtime::cut(points.rows * points.axes, std::size_t{1} << 15);
    std::vector<double> most(std::max<std::size_t>(1, chunks.count), 0.0);
    std::atomic<std::size_t> outside{0};
    runtime::for_chunks(chunks, [&](std::size_t chunk, std::size_t begin, std::size_t end) {
        double mine = 0;
        std::size_t far = 0;
        for (std::size_t i = begin; i < end; ++i) {
            double const size = std::abs(points.data()[i]);
            mine = std::max(mine, size);
            far += size > backend::kLargestCoordinate;
        }
        most[chunk] = mine;
        outside.fetch_add(far, std::memory_order_relaxed);  // a count: read after the join
    });
    if (std::size_t const far = outside.load(std::memory_order_relaxed); far > 0) {
        backend::fail_far(argument, far);
    }
    return *std::max_element(most.begin(), most.end());
}

}  // namespace

SearchCloud::SearchCloud(Cloud const& cloud, char const* argument, char const* batch_argument)
    : points(to_points(cloud.points, argument)), largest(largest_of(points, argument)) {
    if (cloud.batch) batch = to_batch(*cloud.batch, batch_argument);
}

void SearchCloud::multiply(double factor) {
    auto* const data = static_cast<double*>(points.tensor.data());
    runtime::for_ranges(points.rows * points.axes, 1 << 16,
                        [&](std::size_t begin, std::size_t end) {
                            for (std::size_t i = begin; i < end; ++i) data[i] *= factor;
                        });
}

SearchSpace::SearchSpace(Cloud const& point_cloud, Cloud const& query_cloud)
    : points(point_cloud, "points", "batch"), queries(query_cloud, "queries", "query_batch"),
      scale(search_scale(std::max(points.largest, queries.largest))) {
    points.multiply(scale);
    queries.multiply(scale);
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
