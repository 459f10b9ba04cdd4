// Searches a tree of boxes. This file is compiled once per instruction-set level, under the rule of
// engine.cpp: only plain types of the standard library.
#include "cpu/tree_engine.hpp"

#include <limits>

#include "cpu/level_name.hpp"

// How vectors are passed between functions does not matter: all that pass them are inlined.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace tensorhash::cpu {
inline namespace TH_STEP_NAMESPACE {
namespace {

// The compiler splits these vectors where the machine's are shorter.
typedef double Lanes __attribute__((vector_size(kTreeLanes * sizeof(double))));
using LaneMask = decltype(Lanes{} < Lanes{});  // integers, 0 or -1

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TH_STEP Lanes load(double const* from) {
    Lanes lanes;
    __builtin_memcpy(&lanes, from, sizeof(lanes));
    return lanes;
}

TH_STEP void store(double* to, Lanes lanes) { __builtin_memcpy(to, &lanes, sizeof(lanes)); }

TH_STEP Lanes all_lanes(double value) { return Lanes{value, value, value, value}; }

TH_STEP Lanes larger(Lanes a, Lanes b) { return a > b ? a : b; }

/// One bit per lane.
TH_STEP std::uint32_t bits_of(LaneMask mask) {
#if defined(TH_SIMD_AVX2)
    __m256d lanes;
    __builtin_memcpy(&lanes, &mask, sizeof(lanes));
    return static_cast<std::uint32_t>(_mm256_movemask_pd(lanes));
#elif defined(TH_SIMD_SSE41)
    __m128d halves[2];
    __builtin_memcpy(halves, &mask, sizeof(halves));
    return static_cast<std::uint32_t>(_mm_movemask_pd(halves[0]) | _mm_movemask_pd(halves[1]) << 2);
#else
    std::uint32_t bits = 0;
    for (std::uint32_t lane = 0; lane < kTreeLanes; ++lane) bits |= (mask[lane] & 1u) << lane;
    return bits;
#endif
}

/// The last lane of `before`, then all lanes of `lanes` but its last.
TH_STEP Lanes shifted(Lanes before, Lanes lanes) {
#if defined(__clang__)
    return __builtin_shufflevector(before, lanes, 3, 4, 5, 6);
#else
    return __builtin_shuffle(before, lanes, LaneMask{3, 4, 5, 6});
#endif
}

/// Squared distances to the boxes of a node. Never above the distance to a point of the box: every
/// step rounds in the same way as for a point, and rounding is monotone.
template <std::size_t Axes>
TH_STEP Lanes box_distances(TreeView const& tree, std::uint32_t node, double const* query) {
    std::size_t const axes = Axes != 0 ? Axes : tree.axes;
    double const* box = tree.boxes + node * axes * 2 * kTreeLanes;
    Lanes sum = all_lanes(0);
    for (std::size_t axis = 0; axis < axes; ++axis, box += 2 * kTreeLanes) {
        Lanes const at = all_lanes(query[axis]);
        // Positive on one side of the box, negative on the other and inside.
        Lanes const beyond = larger(load(box) - at, at - load(box + kTreeLanes));
        Lanes const difference = larger(beyond, all_lanes(0));
        sum += difference * difference;
    }
    return sum;
}

template <std::size_t Axes>
TH_STEP Lanes point_distances(TreeView const& tree, std::size_t first, double const* query) {
    std::size_t const axes = Axes != 0 ? Axes : tree.axes;
    double const* point = tree.points + first;
    Lanes sum = all_lanes(0);
    for (std::size_t axis = 0; axis < axes; ++axis, point += tree.stride) {
        Lanes const difference = all_lanes(query[axis]) - load(point);
        sum += difference * difference;
    }
    return sum;
}

/// Measures the points of a leaf. Returns one bit per point with a square of at most `limit`.
template <std::size_t Axes>
TH_STEP std::uint32_t measure(TreeView const& tree, std::uint32_t first, std::uint32_t points,
                              double const* query, double limit, double* squares) {
    std::uint32_t near = 0;
    for (std::uint32_t i = 0; i < points; i += kTreeLanes) {
        Lanes const sum = point_distances<Axes>(tree, first + i, query);
        store(squares + i, sum);
        near |= bits_of(sum <= all_lanes(limit)) << i;
    }
    return near & ((1u << points) - 1);
}

/// The nearest candidates, sorted, in 4 * Vectors lanes; the last candidate is in the last vector.
/// An insertion has no branch. Every vector has a fixed number, so that all stay in registers.
template <std::size_t Vectors>
class SortedLanes {
public:
    SortedLanes(std::size_t count, Candidate*) noexcept : last_(count - 1) {
        for (std::size_t i = 0; i < Vectors; ++i) squares_[i] = rows_[i] = all_lanes(kInfinity);
    }

    TH_STEP void insert(double squared, std::uint32_t row) {
        Lanes const value = all_lanes(squared);
        Lanes const its_row = all_lanes(row);
        auto const precedes = [&](Lanes squares, Lanes rows) {
            return (squares < value) | ((squares == value) & (rows < its_row));
        };
        for (std::size_t i = Vectors; i-- > 0;) {
            Lanes const none = all_lanes(-kInfinity);
            Lanes const squares = shifted(i > 0 ? squares_[i - 1] : none, squares_[i]);
            Lanes const rows = shifted(i > 0 ? rows_[i - 1] : none, rows_[i]);
            LaneMask const stays = precedes(squares_[i], rows_[i]);
            LaneMask const is_place = precedes(squares, rows);  // the first lane that moves
            squares_[i] = stays ? squares_[i] : is_place ? value : squares;
            rows_[i] = stays ? rows_[i] : is_place ? its_row : rows;
        }
    }

    /// The last of the candidates; infinitely far while there are too few.
    double squared() const noexcept { return last_of(squares_[Vectors - 1]); }
    double row() const noexcept { return last_of(rows_[Vectors - 1]); }

    std::size_t finish(Candidate* best) const noexcept {
        double squares[Vectors * kTreeLanes];
        double rows[Vectors * kTreeLanes];
        for (std::size_t i = 0; i < Vectors; ++i) {
            store(squares + i * kTreeLanes, squares_[i]);
            store(rows + i * kTreeLanes, rows_[i]);
        }
        std::size_t found = 0;
        for (; found <= last_ && squares[found] != kInfinity; ++found) {  // infinity: no point
            best[found] = {squares[found], static_cast<std::uint32_t>(rows[found])};
        }
        return found;
    }

private:
    double last_of(Lanes last_lanes) const noexcept {
        double lanes[kTreeLanes];
        store(lanes, last_lanes);
        return lanes[last_ % kTreeLanes];
    }

    Lanes squares_[Vectors];
    Lanes rows_[Vectors];  // as numbers; float64 holds all of them
    std::size_t last_;
};

/// The nearest candidates in a heap with the farthest on top, for many of them.
class Heap {
public:
    Heap(std::size_t count, Candidate* best) noexcept : best_(best), count_(count) {}

    void insert(double squared, std::uint32_t row) noexcept {
        Candidate const candidate{squared, row};
        if (size_ < count_) {
            std::size_t at = size_++;
            for (; at > 0 && best_[(at - 1) / 2] < candidate; at = (at - 1) / 2) {
                best_[at] = best_[(at - 1) / 2];
            }
            best_[at] = candidate;
        } else if (candidate < best_[0]) {
            sink(candidate, count_);
        }
    }

    double squared() const noexcept { return size_ < count_ ? kInfinity : best_[0].squared; }
    double row() const noexcept { return size_ < count_ ? kInfinity : best_[0].row; }

    std::size_t finish(Candidate*) noexcept {
        for (std::size_t size = size_; size-- > 1;) {
            Candidate const last = best_[size];
            best_[size] = best_[0];
            sink(last, size);
        }
        return size_;
    }

private:
    /// Puts a candidate in the place of the top of a heap of this size.
    void sink(Candidate const& candidate, std::size_t size) noexcept {
        std::size_t at = 0;
        for (std::size_t next = 1; next < size; next = 2 * at + 1) {
            if (next + 1 < size && best_[next] < best_[next + 1]) ++next;
            if (!(candidate < best_[next])) break;
            best_[at] = best_[next];
            at = next;
        }
        best_[at] = candidate;
    }

    Candidate* best_;
    std::size_t count_;
    std::size_t size_ = 0;
};

struct PendingNode {
    double squared;
    std::uint32_t child;
    std::uint32_t points;
    std::uint32_t lowest_row;
};

TH_STEP void order(std::uint64_t& a, std::uint64_t& b) {
    std::uint64_t const low = a < b ? a : b;
    b = a < b ? b : a;
    a = low;
}

/// Appends the children in `near` to the pending nodes, the nearest last. Of equally near ones the
/// first child is last: it has the lower rows where points coincide. All four are written without a
/// branch, because their number cannot be predicted; the far ones go behind the last.
TH_STEP PendingNode* add_children(TreeNode const& node, Lanes squares, std::uint32_t near,
                                  PendingNode* top) {
    std::uint64_t keys[kTreeLanes];  // bits of a positive float64 sort like the number
    __builtin_memcpy(keys, &squares, sizeof(keys));
    for (std::uint64_t lane = 0; lane < kTreeLanes; ++lane) {
        std::uint64_t const last = near >> lane & 1 ? 0 : std::uint64_t{1} << 63;
        keys[lane] = (keys[lane] & ~std::uint64_t{3}) | lane | last;
    }
    order(keys[0], keys[1]);
    order(keys[2], keys[3]);
    order(keys[0], keys[2]);
    order(keys[1], keys[3]);
    order(keys[1], keys[2]);
    int const count = __builtin_popcount(near);
    for (int i = 0; i < static_cast<int>(kTreeLanes); ++i) {
        std::size_t const lane = keys[i] & 3;
        top[i < count ? count - 1 - i : i] = {squares[lane], node.child[lane], node.points[lane],
                                              node.lowest_row[lane]};
    }
    return top + count;
}

template <std::size_t Axes, class Best>
std::size_t nearest_with(TreeView const& tree, std::uint32_t root, double const* query,
                         std::size_t count, double bound, Candidate* out) {
    PendingNode pending[kMaxPending];
    double squares[kLeafPoints];
    Best best(count, out);
    double last_row = kInfinity;  // of the last candidate, if it is as far as `limit`
    double limit = bound;
    PendingNode* top = pending;
    *top++ = {0, root, 0, 0};
    while (top != pending) {
        PendingNode const next = *--top;
        if (next.squared > limit || (next.squared == limit && next.lowest_row > last_row)) continue;
        if (next.points == 0) {
            TreeNode const& node = tree.nodes[next.child];
            Lanes const distances = box_distances<Axes>(tree, next.child, query);
            std::uint32_t const near = bits_of(distances <= all_lanes(limit));
            top = add_children(node, distances, near & ((1u << node.children) - 1), top);
            continue;
        }
        auto near = measure<Axes>(tree, next.child, next.points, query, limit, squares);
        if (near == 0) continue;
        for (; near != 0; near &= near - 1) {
            auto const i = static_cast<std::uint32_t>(__builtin_ctz(near));
            best.insert(squares[i], tree.rows[next.child + i]);
        }
        if (best.squared() <= limit) {
            limit = best.squared();
            last_row = best.row();
        }
    }
    return best.finish(out);
}

template <std::size_t Axes>
std::size_t nearest(TreeView const& tree, std::uint32_t root, double const* query,
                    std::size_t count, double bound, Candidate* best) {
    if (count <= 4) {
        return nearest_with<Axes, SortedLanes<1>>(tree, root, query, count, bound, best);
    }
    if (count <= 8) {
        return nearest_with<Axes, SortedLanes<2>>(tree, root, query, count, bound, best);
    }
    if (count <= 12) {
        return nearest_with<Axes, SortedLanes<3>>(tree, root, query, count, bound, best);
    }
    if (count <= 16) {
        return nearest_with<Axes, SortedLanes<4>>(tree, root, query, count, bound, best);
    }
    return nearest_with<Axes, Heap>(tree, root, query, count, bound, best);
}

template <std::size_t Axes>
void within(TreeView const& tree, std::uint32_t root, double const* query, double squared,
            CandidateSink& sink) {
    struct Pending {
        std::uint32_t child;
        std::uint32_t points;
    };
    Pending pending[kMaxPending];
    double squares[kLeafPoints];
    Pending* top = pending;
    *top++ = {root, 0};
    while (top != pending) {
        Pending const next = *--top;
        if (next.points == 0) {
            TreeNode const& node = tree.nodes[next.child];
            Lanes const distances = box_distances<Axes>(tree, next.child, query);
            auto near = bits_of(distances <= all_lanes(squared)) & ((1u << node.children) - 1);
            for (; near != 0; near &= near - 1) {
                auto const lane = static_cast<std::uint32_t>(__builtin_ctz(near));
                *top++ = {node.child[lane], node.points[lane]};
            }
            continue;
        }
        auto near = measure<Axes>(tree, next.child, next.points, query, squared, squares);
        if (static_cast<std::size_t>(sink.end - sink.at) < kLeafPoints) sink.grow(sink);
        for (; near != 0; near &= near - 1) {
            auto const i = static_cast<std::uint32_t>(__builtin_ctz(near));
            *sink.at++ = {squares[i], tree.rows[next.child + i]};
        }
    }
}

std::size_t nearest_of(TreeView const& tree, std::uint32_t root, double const* query,
                       std::size_t count, double bound, Candidate* best) {
    return (tree.axes == 3 ? nearest<3> : nearest<0>)(tree, root, query, count, bound, best);
}

void within_of(TreeView const& tree, std::uint32_t root, double const* query, double squared,
               CandidateSink& sink) {
    (tree.axes == 3 ? within<3> : within<0>)(tree, root, query, squared, sink);
}

TreeLoops const kTable{nearest_of, within_of};

}  // namespace
}  // namespace TH_STEP_NAMESPACE

/// The loops of this level; tree_dispatch.cpp declares one such function per level.
TreeLoops const& TH_LEVEL_NAME(tree_loops_)();
TreeLoops const& TH_LEVEL_NAME(tree_loops_)() { return kTable; }

}  // namespace tensorhash::cpu
