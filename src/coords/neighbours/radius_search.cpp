// Points within a radius: a query looks up the few cells around it and measures their points.
#include <algorithm>
#include <cmath>
#include <vector>

#include "coords/neighbours/cell_grid.hpp"
#include "coords/neighbours/search.hpp"
#include "coords/neighbours/search_space.hpp"
#include "runtime/parallel.hpp"
#include "runtime/scan.hpp"

namespace tensorhash::coords {
namespace {

constexpr std::size_t kBlock = 64;   // queries that look up their cells together
constexpr std::size_t kGrain = 256;  // queries per task, at least

/// The neighbours of one chunk of queries.
struct ChunkNeighbors {
    std::vector<Candidate> candidates;
    std::vector<std::int64_t> counts;
};

class RadiusSearch {
public:
    RadiusSearch(CellGrid const& cells, SearchCloud const& queries, double radius,
                 std::optional<std::int64_t> most)
        : cells_(cells), queries_(queries), radius_(radius), reach_(reach_of(radius)),
          most_(most ? static_cast<std::size_t>(*most) : cells.size()) {}

    void search(std::size_t begin, std::size_t end, ChunkNeighbors& found) const {
        CellKeys keys;
        std::vector<std::size_t> ends;
        std::vector<std::int32_t> cells;
        for (std::size_t first = begin; first < end; first += kBlock) {
            std::size_t const last = std::min(end, first + kBlock);
            keys.clear();
            ends.clear();
            for (std::size_t query = first; query < last; ++query) {
                cells_.add_window(queries_.points.row(query), batch(query), keys);
                ends.push_back(keys.size());
            }
            cells.resize(keys.size());
            cells_.find(keys, cells.data());
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
        return queries_.batch ? queries_.batches()[query] : 0;
    }

    void collect(std::size_t query, std::span<std::int32_t const> window,
                 ChunkNeighbors& found) const {
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
        double const* const from = queries_.points.row(query);
        std::int64_t const wanted = batch(query);
        std::size_t const end = cells_.begin(cell + 1);
        for (std::size_t i = cells_.begin(cell); i < end; ++i) {
            double const squared = squared_distance(from, cells_.point(i), queries_.points.axes);
            // The reported distance decides. The square is only a quick test.
            if (squared <= reach_ * reach_ && std::sqrt(squared) <= radius_ &&
                cells_.batch(i) == wanted) {
                out.push_back({squared, cells_.row(i)});
            }
        }
    }

    CellGrid const& cells_;
    SearchCloud const& queries_;
    double radius_;
    double reach_;
    std::size_t most_;
};

Neighbors join_chunks(std::vector<ChunkNeighbors> const& found, std::size_t queries, double scale) {
    std::vector<std::int64_t> offsets;
    offsets.reserve(queries + 1);
    std::vector<std::size_t> places;
    for (ChunkNeighbors const& chunk : found) {
        places.push_back(chunk.candidates.size());
        offsets.insert(offsets.end(), chunk.counts.begin(), chunk.counts.end());
    }
    offsets.push_back(0);
    runtime::scan(offsets);
    runtime::scan(places);
    Neighbors out = make_neighbors(offsets);
    runtime::run_tasks(found.size(), [&](std::size_t chunk) {
        write_neighbors(out, places[chunk], found[chunk].candidates.data(),
                        found[chunk].candidates.size(), scale);
    });
    return out;
}

}  // namespace

double scaled_radius(double radius, double scale) noexcept {
    constexpr double kBeyond = 0x1p+520;  // above every distance between scaled points
    return std::min(radius * scale, kBeyond);
}

Neighbors find_within(CellGrid const& cells, SearchCloud const& queries, double scale,
                      double radius, std::optional<std::int64_t> max_neighbors) {
    RadiusSearch const search(cells, queries, scaled_radius(radius, scale), max_neighbors);
    auto const chunks = runtime::cut(queries.rows(), kGrain);
    std::vector<ChunkNeighbors> found(std::max<std::size_t>(1, chunks.count));
    runtime::for_chunks(chunks, [&](std::size_t chunk, std::size_t begin, std::size_t end) {
        search.search(begin, end, found[chunk]);
    });
    return join_chunks(found, queries.rows(), scale);
}

Neighbors find_within(backend::RadiusRequest const& request) {
    SearchSpace const space(request.points, request.queries);
    CellGrid const cells(space.points, reach_of(scaled_radius(request.radius, space.scale)));
    return find_within(cells, space.queries, space.scale, request.radius, request.max_neighbors);
}

}  // namespace tensorhash::coords
