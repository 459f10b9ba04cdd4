// Points within a radius.
#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "coords/neighbours/point_tree.hpp"
#include "coords/neighbours/query_order.hpp"
#include "coords/neighbours/search.hpp"
#include "coords/neighbours/search_space.hpp"
#include "runtime/block_vector.hpp"
#include "runtime/parallel.hpp"
#include "runtime/scan.hpp"

namespace tensorhash::coords {
namespace {

constexpr std::size_t kGrain = 256;  // queries per task, at least
// Up to this many neighbours, a search for the nearest is faster than a list of all.
constexpr std::size_t kFew = 16;
static_assert(kFew <= cpu::kLeafPoints);

/// The radius of a search in the tree. The margin is wider than the rounding error of a distance.
double reach_of(double radius) noexcept { return radius * (1 + 0x1p-40); }

/// Candidates of several queries, one after the other.
class CandidateList : private cpu::CandidateSink {
public:
    CandidateList() noexcept
        : CandidateSink{nullptr, nullptr, [](CandidateSink& sink) {
                            static_cast<CandidateList&>(sink).grow_list();
                        }} {}
    CandidateList(CandidateList const&) = delete;
    CandidateList& operator=(CandidateList const&) = delete;

    CandidateSink& sink() noexcept { return *this; }
    std::size_t size() const noexcept { return static_cast<std::size_t>(at - list_.data()); }
    std::span<Candidate> from(std::size_t begin) noexcept {
        return {list_.data() + begin, size() - begin};
    }
    Candidate const* data() const noexcept { return list_.data(); }
    /// Where cpu::kLeafPoints more have room.
    Candidate* room() {
        if (static_cast<std::size_t>(end - at) < cpu::kLeafPoints) grow_list();
        return at;
    }
    void resize(std::size_t count) noexcept { at = list_.data() + count; }

private:
    void grow_list() {
        std::size_t const used = size();
        list_.resize(std::max(2 * list_.size(), used + 1024));
        at = list_.data() + used;
        end = list_.data() + list_.size();
    }

    runtime::BlockVector<Candidate> list_;  // up to `at` in use
};

/// The neighbours of one chunk of queries, in the order in which they were taken.
struct ChunkNeighbors {
    CandidateList candidates;
    std::vector<std::size_t> ends;
};

class RadiusSearch {
public:
    RadiusSearch(PointTree const& tree, SearchCloud const& queries, double radius,
                 std::optional<std::int64_t> most)
        : tree_(tree), view_(tree.view()), queries_(queries), batches_(tree.batches_of(queries)),
          radius_(radius),
          most_(most ? static_cast<std::size_t>(*most) : std::numeric_limits<std::size_t>::max()) {}

    void find(std::size_t query, ChunkNeighbors& found) const {
        std::size_t const before = found.candidates.size();
        std::uint32_t const batch = batches_[query];
        if (batch != KeyGroups::kNoGroup && most_ > 0) {
            collect(queries_.points.row(query), tree_.root(batch), found.candidates);
        }
        std::span<Candidate> mine = found.candidates.from(before);
        // The reported distance decides. Its square is a quick test that leaves few to the root.
        double const surely = radius_ * (1 - 0x1p-40);
        auto const is_beyond = [&](Candidate const& one) {
            return one.squared > surely * surely && std::sqrt(one.squared) > radius_;
        };
        auto const last = std::remove_if(mine.begin(), mine.end(), is_beyond);
        mine = mine.first(static_cast<std::size_t>(last - mine.begin()));
        if (mine.size() > most_) {
            auto const kept = mine.begin() + static_cast<std::ptrdiff_t>(most_);
            std::nth_element(mine.begin(), kept, mine.end());
            mine = mine.first(most_);
        }
        if (most_ > kFew) std::sort(mine.begin(), mine.end());
        found.candidates.resize(before + mine.size());
        found.ends.push_back(found.candidates.size());
    }

private:
    /// Appends all points within reach, or the nearest few of them, sorted.
    void collect(double const* query, std::uint32_t root, CandidateList& out) const {
        double const reach = reach_of(radius_);
        if (most_ > kFew) {
            cpu::tree_loops().within(view_, root, query, reach * reach, out.sink());
        } else {
            Candidate* const best = out.room();
            out.resize(out.size() +
                       cpu::tree_loops().nearest(view_, root, query, most_, reach * reach, best));
        }
    }

    PointTree const& tree_;
    cpu::TreeView view_;
    SearchCloud const& queries_;
    std::vector<std::uint32_t> batches_;
    double radius_;
    std::size_t most_;
};

}  // namespace

Neighbors find_within(PointTree const& tree, SearchCloud const& queries, double scale,
                      double radius, std::optional<std::int64_t> max_neighbors) {
    RadiusSearch const search(tree, queries, backend::scaled_radius(radius, scale), max_neighbors);
    auto const order = near_each_other(queries.points);
    auto const chunks = runtime::cut(queries.rows(), kGrain);
    std::vector<ChunkNeighbors> found(std::max<std::size_t>(1, chunks.count));
    std::vector<std::int64_t> offsets(queries.rows() + 1, 0);
    runtime::for_chunks(chunks, [&](std::size_t chunk, std::size_t begin, std::size_t end) {
        std::size_t before = 0;
        for (std::size_t i = begin; i < end; ++i) {
            search.find(order[i], found[chunk]);
            std::size_t const after = found[chunk].ends.back();
            offsets[order[i]] = static_cast<std::int64_t>(after - before);
            before = after;
        }
    });
    runtime::scan(offsets);
    Neighbors out = make_neighbors(offsets);
    runtime::for_chunks(chunks, [&](std::size_t chunk, std::size_t begin, std::size_t end) {
        std::size_t before = 0;
        for (std::size_t i = begin; i < end; ++i) {
            std::size_t const after = found[chunk].ends[i - begin];
            write_neighbors(out, static_cast<std::size_t>(offsets[order[i]]),
                            found[chunk].candidates.data() + before, after - before, scale);
            before = after;
        }
    });
    return out;
}

Neighbors find_within(backend::RadiusRequest const& request) {
    SearchSpace const space(request.points, request.queries);
    return find_within(PointTree(space.points), space.queries, space.scale, request.radius,
                       request.max_neighbors);
}

}  // namespace tensorhash::coords
