// The k nearest points. The number of each query's neighbours is known before the search, so
// results go straight to their places.
#include <algorithm>
#include <vector>

#include "coords/neighbours/kd_tree.hpp"
#include "coords/neighbours/search.hpp"
#include "coords/neighbours/search_space.hpp"
#include "runtime/parallel.hpp"
#include "runtime/scan.hpp"

namespace tensorhash::coords {

Neighbors find_nearest(KdTree const& tree, SearchCloud const& queries, double scale,
                       std::int64_t k) {
    auto const roots = tree.roots_of(queries);
    std::vector<std::int64_t> offsets(queries.rows() + 1, 0);
    for (std::size_t query = 0; query < queries.rows(); ++query) {
        offsets[query] = std::min(k, static_cast<std::int64_t>(tree.available(roots[query])));
    }
    runtime::scan(offsets);
    Neighbors out = make_neighbors(offsets);
    runtime::for_ranges(queries.rows(), 256, [&](std::size_t begin, std::size_t end) {
        std::vector<Candidate> best;
        for (std::size_t query = begin; query < end; ++query) {
            auto const at = static_cast<std::size_t>(offsets[query]);
            std::size_t const count = static_cast<std::size_t>(offsets[query + 1]) - at;
            if (count == 0) continue;
            tree.nearest(queries.points.row(query), roots[query], count, best);
            write_neighbors(out, at, best.data(), best.size(), scale);
        }
    });
    return out;
}

Neighbors find_nearest(Cloud const& points, Cloud const& queries, std::int64_t k) {
    SearchSpace const space(points, queries);
    return find_nearest(KdTree(space.points), space.queries, space.scale, k);
}

}  // namespace tensorhash::coords
