// The tree searches at every instruction-set level against brute force. Counts are at both ends of
// what each number of vectors holds, and points coincide, so that rows break ties.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "coords/neighbours/point_tree.hpp"
#include "cpu/engine.hpp"
#include "cpu/tree_engine.hpp"

namespace tensorhash::cpu {
#if defined(TH_HAS_LEVEL_v2)
TreeLoops const& tree_loops_v2();
#endif
#if defined(TH_HAS_LEVEL_v3)
TreeLoops const& tree_loops_v3();
#endif
#if defined(TH_HAS_LEVEL_generic)
TreeLoops const& tree_loops_generic();
#endif
}  // namespace tensorhash::cpu

namespace {

using tensorhash::Tensor;
using tensorhash::coords::PointTree;
using tensorhash::coords::SearchCloud;
namespace cpu = tensorhash::cpu;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<cpu::TreeLoops const*> levels() {
    std::vector<cpu::TreeLoops const*> out;
#if defined(TH_HAS_LEVEL_v2)
    out.push_back(&cpu::tree_loops_v2());
#endif
#if defined(TH_HAS_LEVEL_v3)
    if (cpu::has_v3()) out.push_back(&cpu::tree_loops_v3());
#endif
#if defined(TH_HAS_LEVEL_generic)
    out.push_back(&cpu::tree_loops_generic());
#endif
    return out;
}

/// Every third point lies on a lattice.
std::vector<double> random_points(std::size_t count, std::size_t axes, unsigned seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> anywhere(-1, 1);
    std::vector<double> values;
    for (std::size_t i = 0; i < count * axes; ++i) {
        double const lattice = 0.5 * (static_cast<double>(random() % 5) - 2);
        values.push_back(i / axes % 3 == 0 ? lattice : anywhere(random));
    }
    return values;
}

/// All points by distance, then by row.
std::vector<cpu::Candidate> by_distance(std::vector<double> const& points, std::size_t axes,
                                        double const* query) {
    std::vector<cpu::Candidate> all;
    for (std::size_t row = 0; row < points.size() / axes; ++row) {
        double squared = 0;
        for (std::size_t axis = 0; axis < axes; ++axis) {
            double const difference = query[axis] - points[row * axes + axis];
            squared += difference * difference;
        }
        all.push_back({squared, static_cast<std::uint32_t>(row)});
    }
    std::sort(all.begin(), all.end());
    return all;
}

void expect_same(std::vector<cpu::Candidate> const& found,
                 std::vector<cpu::Candidate> const& expected) {
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
        ASSERT_EQ(found[i].squared, expected[i].squared) << i;
        ASSERT_EQ(found[i].row, expected[i].row) << i;
    }
}

struct Found final : cpu::CandidateSink {
    Found() : cpu::CandidateSink{nullptr, nullptr, grow_found} { grow_found(*this); }
    static void grow_found(cpu::CandidateSink& sink) {
        auto& self = static_cast<Found&>(sink);
        auto const used = sink.at == nullptr ? 0 : sink.at - self.list.data();
        self.list.resize(self.list.size() + cpu::kLeafPoints);
        sink.at = self.list.data() + used;
        sink.end = self.list.data() + self.list.size();
    }
    std::vector<cpu::Candidate> sorted() {
        list.resize(static_cast<std::size_t>(at - list.data()));
        std::sort(list.begin(), list.end());
        return list;
    }
    std::vector<cpu::Candidate> list;
};

class TreeLevels : public ::testing::TestWithParam<std::size_t> {
protected:
    std::size_t axes_ = GetParam();
    std::vector<double> points_ = random_points(900, axes_, 1);
    std::vector<double> queries_ = random_points(60, axes_, 2);
    PointTree tree_{SearchCloud(
        {Tensor::from(points_, {900, static_cast<std::int64_t>(axes_)}), {}}, "points", "batch")};
};

TEST_P(TreeLevels, the_nearest_are_those_of_brute_force) {
    for (std::size_t query = 0; query < queries_.size(); query += axes_) {
        double const* const at = &queries_[query];
        auto const all = by_distance(points_, axes_, at);
        for (std::size_t const count : {1, 3, 4, 5, 8, 9, 11, 12, 13, 16, 17, 40, 900}) {
            auto const nearest = std::vector(all.begin(), all.begin() + std::ptrdiff_t(count));
            // The bound of the search includes a point at exactly that distance.
            for (double const bound : {kInfinity, nearest.back().squared}) {
                for (cpu::TreeLoops const* const loops : levels()) {
                    std::vector<cpu::Candidate> best(count);
                    best.resize(
                        loops->nearest(tree_.view(), tree_.root(0), at, count, bound, best.data()));
                    expect_same(best, nearest);
                }
            }
        }
    }
}

TEST_P(TreeLevels, fewer_are_found_than_wanted_if_the_bound_is_near) {
    for (std::size_t query = 0; query < queries_.size(); query += axes_) {
        double const* const at = &queries_[query];
        auto all = by_distance(points_, axes_, at);
        double const bound = all[6].squared;
        while (all.back().squared > bound) all.pop_back();
        for (cpu::TreeLoops const* const loops : levels()) {
            for (std::size_t const count : {all.size() + 1, all.size() + 4, std::size_t{200}}) {
                std::vector<cpu::Candidate> best(count);
                best.resize(
                    loops->nearest(tree_.view(), tree_.root(0), at, count, bound, best.data()));
                expect_same(best, all);
            }
            Found found;
            loops->within(tree_.view(), tree_.root(0), at, bound, found);
            expect_same(found.sorted(), all);
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Axes, TreeLevels, ::testing::Values(1, 2, 3, 5));

}  // namespace
