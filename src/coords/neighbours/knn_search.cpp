// The k nearest points. How many each query gets is known before the search, so answers go straight to their place.
#include <algorithm>
#include <string>
#include <vector>

#include "coords/neighbours/search_space.hpp"
#include "coords/neighbours/tree.hpp"
#include "runtime/parallel.hpp"
#include "tensorhash/coords/neighbours.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::coords {

Neighbors knn_search(Cloud const& points, Cloud const& queries, std::int64_t k) {
    if (k < 0) {
        throw ValueError("k: expected 0 or more, got " + std::to_string(k));
    }
    SearchSpace const space(points, queries);
    Tree const tree(space);
    std::vector<std::int64_t> offsets(space.queries.rows + 1, 0);
    for (std::size_t query = 0; query < space.queries.rows; ++query) {
        offsets[query + 1] =
            offsets[query] + std::min(k, static_cast<std::int64_t>(tree.available(query)));
    }
    Neighbors out = make_neighbors(offsets);
    runtime::for_ranges(space.queries.rows, 256, [&](std::size_t begin, std::size_t end) {
        std::vector<Candidate> best;
        for (std::size_t query = begin; query < end; ++query) {
            auto const at = static_cast<std::size_t>(offsets[query]);
            std::size_t const count = static_cast<std::size_t>(offsets[query + 1]) - at;
            if (count == 0) continue;
            tree.nearest(query, count, best);
            write_neighbors(out, at, best.data(), best.size(), space.scale);
        }
    });
    return out;
}

}  // namespace tensorhash::coords
