// Points within a radius: a query asks the vector-key table for the few cells around it and measures what they hold.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "coords/neighbours/cells.hpp"
#include "coords/neighbours/search_space.hpp"
#include "runtime/parallel.hpp"
#include "tensorhash/coords/neighbours.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::coords {
namespace {

constexpr std::size_t kBlock = 64;    // queries whose cells are looked up together
constexpr std::size_t kGrain = 256;   // queries worth a thread
constexpr double kBeyond = 0x1p+520;  // above every distance in a search space

/// What one chunk of queries found.
struct Found {
    std::vector<Candidate> candidates;
    std::vector<std::int64_t> counts;
};

class RadiusSearch {
public:
    RadiusSearch(SearchSpace const& space, double radius, std::optional<std::int64_t> most)
        : space_(space), radius_(std::min(radius * space.scale, kBeyond)),
          // Wider than the rounding of a distance can be.
          reach_(radius_ * (1 + 0x1p-40)),
          most_(most ? static_cast<std::size_t>(*most) : space.points.rows), cells_(space, reach_) {
    }

    void search(std::size_t begin, std::size_t end, Found& found) const {
        CellNames names;
        std::vector<std::size_t> ends;
        std::vector<std::int32_t> cells;
        for (std::size_t first = begin; first < end; first += kBlock) {
            std::size_t const last = std::min(end, first + kBlock);
            names.clear();
            ends.clear();
            for (std::size_t query = first; query < last; ++query) {
                cells_.name_window(space_.queries.row(query), batch(query), names);
                ends.push_back(names.size());
            }
            cells.resize(names.size());
            cells_.find(names, cells.data());
            std::size_t at = 0;
            for (std::size_t query = first; query < last; ++query) {
                std::size_t const to = ends[query - first];
                collect(query, {cells.data() + at, to - at}, found);
                at = to;
            }
        }
    }

private:
    std::int64_t batch(std::size_t query) const noexcept {
        return space_.query_batch ? space_.batch_of_queries()[query] : 0;
    }

    void collect(std::size_t query, std::span<std::int32_t const> window, Found& found) const {
        std::size_t const before = found.candidates.size();
        visit_once(window, [&](std::size_t cell) { measure(query, cell, found.candidates); });
        auto const mine = found.candidates.begin() + static_cast<std::ptrdiff_t>(before);
        std::size_t const count = std::min(most_, found.candidates.size() - before);
        auto const kept = mine + static_cast<std::ptrdiff_t>(count);
        if (kept != found.candidates.end()) {
            std::nth_element(mine, kept, found.candidates.end());
            found.candidates.erase(kept, found.candidates.end());
        }
        std::sort(mine, mine + static_cast<std::ptrdiff_t>(count));
        found.counts.push_back(static_cast<std::int64_t>(count));
    }

    void measure(std::size_t query, std::size_t cell, std::vector<Candidate>& out) const {
        double const* const from = space_.queries.row(query);
        std::int64_t const wanted = batch(query);
        std::size_t const end = cells_.begin(cell + 1);
        for (std::size_t i = cells_.begin(cell); i < end; ++i) {
            double const squared = squared_distance(from, cells_.point(i), space_.axes());
            // The rule is about the distance that is reported; its square is only the quick test.
            if (squared <= reach_ * reach_ && std::sqrt(squared) <= radius_ &&
                cells_.batch(i) == wanted) {
                out.push_back({squared, cells_.row(i)});
            }
        }
    }

    SearchSpace const& space_;
    double radius_;
    double reach_;
    std::size_t most_;
    Cells cells_;
};

Neighbors joined(std::vector<Found> const& found, std::size_t queries, double scale) {
    std::vector<std::int64_t> offsets{0};
    offsets.reserve(queries + 1);
    std::vector<std::size_t> starts;
    for (Found const& chunk : found) {
        starts.push_back(static_cast<std::size_t>(offsets.back()));
        for (std::int64_t const count : chunk.counts) offsets.push_back(offsets.back() + count);
    }
    Neighbors out = make_neighbors(offsets);
    runtime::run_tasks(found.size(), [&](std::size_t chunk) {
        write_neighbors(out, starts[chunk], found[chunk].candidates.data(),
                        found[chunk].candidates.size(), scale);
    });
    return out;
}

}  // namespace

Neighbors radius_search(Cloud const& points, Cloud const& queries, double radius,
                        std::optional<std::int64_t> max_neighbors) {
    if (!std::isfinite(radius) || radius < 0) {
        throw ValueError("radius: expected a finite number, 0 or more, got " +
                         std::to_string(radius));
    }
    if (max_neighbors && *max_neighbors < 0) {
        throw ValueError("max_neighbors: expected 0 or more, got " +
                         std::to_string(*max_neighbors));
    }
    SearchSpace const space(points, queries);
    RadiusSearch const search(space, radius, max_neighbors);
    auto const chunks = runtime::cut(space.queries.rows, kGrain);
    std::vector<Found> found(std::max<std::size_t>(1, chunks.count));
    runtime::for_chunks(chunks, [&](std::size_t chunk, std::size_t begin, std::size_t end) {
        search.search(begin, end, found[chunk]);
    });
    return joined(found, space.queries.rows, space.scale);
}

}  // namespace tensorhash::coords
