// Builds the tree level by level, and searches the nearest box first.
#include "coords/neighbours/kd_tree.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "runtime/parallel.hpp"

namespace tensorhash::coords {
namespace {

constexpr std::size_t kLeaf = 16;

std::span<std::uint64_t const> keys_of(SearchCloud const& cloud) {
    return {reinterpret_cast<std::uint64_t const*>(cloud.batches()), cloud.rows()};
}

/// All rows as one group; no group if there are no rows.
RowGroups all_rows(std::size_t rows) {
    RowGroups all;
    all.rows.resize(rows);
    std::iota(all.rows.begin(), all.rows.end(), std::uint32_t{0});
    if (rows > 0) all.offsets.push_back(rows);
    return all;
}

}  // namespace

KdTree::KdTree(SearchCloud const& cloud) : source_(cloud.points), axes_(cloud.points.axes) {
    if (cloud.batch) batches_ = std::make_unique<KeyGroups>(keys_of(cloud));
    RowGroups const batches = batches_ ? batches_->groups() : all_rows(cloud.rows());
    order_ = batches.rows;
    grow(batches);
    points_.resize(order_.size() * axes_);
    runtime::for_ranges(order_.size(), runtime::kGrain, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            std::copy_n(source_.row(order_[i]), axes_, points_.data() + i * axes_);
        }
    });
}

std::vector<std::uint32_t> KdTree::roots_of(SearchCloud const& queries) const {
    if (!batches_)
        return std::vector<std::uint32_t>(queries.rows(), nodes_.empty() ? KeyGroups::kNoGroup : 0);
    std::vector<std::uint32_t> roots(queries.rows());
    std::vector<unsigned char> mask(queries.rows());
    batches_->find(keys_of(queries), roots.data(), mask.data());
    return roots;
}

// The split of a node depends only on its size. So the nodes of a level are known before its points
// are sorted into halves.
void KdTree::grow(RowGroups const& batches) {
    for (std::size_t g = 0; g < batches.count(); ++g) {
        nodes_.push_back({static_cast<std::uint32_t>(batches.offsets[g]),
                          static_cast<std::uint32_t>(batches.offsets[g + 1])});
    }
    for (std::size_t level = 0; level < nodes_.size();) {
        std::size_t const next = nodes_.size();
        for (std::size_t i = level; i < next; ++i) {
            Node const node = nodes_[i];
            if (node.end - node.begin <= kLeaf) continue;
            std::uint32_t const middle = node.begin + (node.end - node.begin) / 2;
            nodes_[i].children = static_cast<std::uint32_t>(nodes_.size());
            nodes_.push_back({node.begin, middle});
            nodes_.push_back({middle, node.end});
        }
        boxes_.resize(next * 2 * axes_);
        // One task per node while nodes are few and large.
        std::size_t const share = (next - level + 255) / 256;
        runtime::run_tasks((next - level + share - 1) / share, [&](std::size_t task) {
            std::size_t const begin = level + task * share;
            for (std::size_t i = begin; i < std::min(next, begin + share); ++i) finish_node(i);
        });
        level = next;
    }
}

void KdTree::finish_node(std::size_t index) {
    Node& node = nodes_[index];
    double* const low = boxes_.data() + index * 2 * axes_;
    double* const high = low + axes_;
    std::copy_n(source_.row(order_[node.begin]), axes_, low);
    std::copy_n(low, axes_, high);
    node.lowest_row = order_[node.begin];
    for (std::uint32_t i = node.begin + 1; i < node.end; ++i) {
        double const* const point = source_.row(order_[i]);
        node.lowest_row = std::min(node.lowest_row, order_[i]);
        for (std::size_t axis = 0; axis < axes_; ++axis) {
            low[axis] = std::min(low[axis], point[axis]);
            high[axis] = std::max(high[axis], point[axis]);
        }
    }
    if (node.children != 0) split(node, widest_axis(index));
}

std::size_t KdTree::widest_axis(std::size_t node) const noexcept {
    double const* const low = boxes_.data() + node * 2 * axes_;
    double const* const high = low + axes_;
    std::size_t widest = 0;
    for (std::size_t axis = 1; axis < axes_; ++axis) {
        if (high[axis] - low[axis] > high[widest] - low[widest]) widest = axis;
    }
    return widest;
}

// Equal coordinates are split by row. So of coincident points, the lower rows lie in the left half,
// which is searched first.
void KdTree::split(Node const& node, std::size_t axis) {
    std::vector<std::pair<double, std::uint32_t>> keyed(node.end - node.begin);
    for (std::size_t i = 0; i < keyed.size(); ++i) {
        std::uint32_t const row = order_[node.begin + i];
        keyed[i] = {source_.row(row)[axis], row};
    }
    auto const middle = keyed.begin() + static_cast<std::ptrdiff_t>(keyed.size() / 2);
    std::nth_element(keyed.begin(), middle, keyed.end());
    for (std::size_t i = 0; i < keyed.size(); ++i) order_[node.begin + i] = keyed[i].second;
}

std::size_t KdTree::available(std::uint32_t root) const noexcept {
    return root == KeyGroups::kNoGroup ? 0 : nodes_[root].end - nodes_[root].begin;
}

/// Never above squared_distance() to a point of the box: every step rounds in the same way, and
/// rounding is monotone.
double KdTree::squared_to_box(double const* query, std::size_t node) const noexcept {
    double const* const low = boxes_.data() + node * 2 * axes_;
    double const* const high = low + axes_;
    double sum = 0;
    for (std::size_t axis = 0; axis < axes_; ++axis) {
        // Positive on one side of the box, negative on the other and inside.
        double const beyond = std::max(low[axis] - query[axis], query[axis] - high[axis]);
        double const difference = std::max(beyond, 0.0);
        sum += difference * difference;
    }
    return sum;
}

void KdTree::scan_leaf(double const* query, Node const& leaf, std::size_t count, double bound,
                       std::vector<Candidate>& best) const {
    for (std::uint32_t i = leaf.begin; i < leaf.end; ++i) {
        Candidate const candidate{squared_distance(query, points_.data() + i * axes_, axes_),
                                  order_[i]};
        if (candidate.squared > bound) continue;
        if (best.size() < count) {
            best.push_back(candidate);
            std::push_heap(best.begin(), best.end());
        } else if (candidate < best.front()) {
            std::pop_heap(best.begin(), best.end());
            best.back() = candidate;
            std::push_heap(best.begin(), best.end());
        }
    }
}

double KdTree::bound_of(double const* query, std::uint32_t root, std::size_t count,
                        Search const& search) const noexcept {
    if (search.root != root || search.best.size() < count) {
        return std::numeric_limits<double>::infinity();
    }
    double bound = 0;
    for (Candidate const& one : search.best) {
        bound = std::max(bound, squared_distance(query, source_.row(one.row), axes_));
    }
    return bound;
}

void KdTree::nearest(double const* query, std::uint32_t root, std::size_t count,
                     Search& search) const {
    double const bound = bound_of(query, root, count, search);
    auto& [best, last_root, open] = search;
    last_root = root;
    best.clear();
    open.clear();
    open.push_back({0.0, root});
    while (!open.empty()) {
        PendingNode const next = open.back();
        open.pop_back();
        if (next.squared > bound) continue;
        Node const& node = nodes_[next.node];
        if (best.size() == count && best.front() < Candidate{next.squared, node.lowest_row}) {
            continue;  // no point of the box is nearer, or equally near with a lower row
        }
        if (node.children == 0) {
            scan_leaf(query, node, count, bound, best);
            continue;
        }
        PendingNode left{squared_to_box(query, node.children), node.children};
        PendingNode right{squared_to_box(query, node.children + 1), node.children + 1};
        if (right.squared < left.squared) std::swap(left, right);
        open.push_back(right);
        open.push_back(left);
    }
    std::sort_heap(best.begin(), best.end());
}

}  // namespace tensorhash::coords
