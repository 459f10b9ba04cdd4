// The k nearest points. The number of each query's neighbours is known before the search, so
// results go straight to their places.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "coords/neighbours/point_tree.hpp"
#include "coords/neighbours/query_order.hpp"
#include "coords/neighbours/search.hpp"
#include "coords/neighbours/search_space.hpp"
#include "runtime/parallel.hpp"
#include "runtime/scan.hpp"

namespace tensorhash::coords {
namespace {

/// The nearest points of one query after the other, on one thread. Near queries should follow each
/// other: each starts from the answer of the last.
class NearestSearch {
public:
    explicit NearestSearch(PointTree const& tree) : tree_(tree), view_(tree.view()) {}

    /// The `count` nearest points of a batch, sorted; 0 < count <= tree.points_in(batch).
    std::vector<Candidate> const& find(double const* query, std::uint32_t batch,
                                       std::size_t count) {
        double const bound = bound_of(query, batch, count);
        batch_ = batch;
        query_ = query;
        best_.resize(count);
        cpu::tree_loops().nearest(view_, tree_.root(batch), query, count, bound, best_.data());
        return best_;
    }

private:
    /// No answer is farther away than this square: the last query's points are there.
    double bound_of(double const* query, std::uint32_t batch, std::size_t count) const noexcept {
        if (batch_ != batch || best_.size() < count) return std::numeric_limits<double>::infinity();
        // By the triangle inequality. Reading the points would take longer than it saves.
        double const between = std::sqrt(squared_distance(query, query_, tree_.axes()));
        double const farthest = between + std::sqrt(best_.back().squared);
        return farthest * farthest * kMargin + kLeast;
    }

    // Wider than the rounding errors of the bound, and of squares near 0.
    static constexpr double kMargin = 1 + 0x1p-40;
    static constexpr double kLeast = 0x1p-1000;

    PointTree const& tree_;
    cpu::TreeView view_;
    double const* query_ = nullptr;  // the last one
    std::vector<Candidate> best_;    // the answer of the last query
    std::uint32_t batch_ = KeyGroups::kNoGroup;
};

}  // namespace

Neighbors find_nearest(PointTree const& tree, SearchCloud const& queries, double scale,
                       std::int64_t k) {
    auto const batches = tree.batches_of(queries);
    std::vector<std::int64_t> offsets(queries.rows() + 1, 0);
    for (std::size_t query = 0; query < queries.rows(); ++query) {
        offsets[query] = std::min(k, static_cast<std::int64_t>(tree.points_in(batches[query])));
    }
    runtime::scan(offsets);
    Neighbors out = make_neighbors(offsets);
    auto const order = near_each_other(queries.points);
    runtime::for_ranges(queries.rows(), 256, [&](std::size_t begin, std::size_t end) {
        NearestSearch search(tree);
        for (std::size_t i = begin; i < end; ++i) {
            std::size_t const query = order[i];
            auto const at = static_cast<std::size_t>(offsets[query]);
            std::size_t const count = static_cast<std::size_t>(offsets[query + 1]) - at;
            if (count == 0) continue;
            auto const& best = search.find(queries.points.row(query), batches[query], count);
            write_neighbors(out, at, best.data(), best.size(), scale);
        }
    });
    return out;
}

Neighbors find_nearest(Cloud const& points, Cloud const& queries, std::int64_t k) {
    SearchSpace const space(points, queries);
    return find_nearest(PointTree(space.points), space.queries, space.scale, k);
}

}  // namespace tensorhash::coords
