// A k-d tree of boxes over the points of each batch, for the k nearest points. A grid would need a
// cell size, and one outlier would make any size wrong.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "coords/neighbours/search_space.hpp"
#include "coords/rows/row_groups.hpp"

namespace tensorhash::coords {

class KdTree {
public:
    explicit KdTree(SearchCloud const& cloud);

    /// The root for the batch of each query; kNoGroup if the batch has no points.
    std::vector<std::uint32_t> roots_of(SearchCloud const& queries) const;
    /// Points below a root.
    std::size_t available(std::uint32_t root) const noexcept;
    /// What one thread keeps from query to query.
    struct Search;
    /// Finds the `count` nearest points, sorted, in `search.best`; 0 < count <= available(root).
    /// Starts from the answer of the last query, so near queries should follow each other. Many
    /// threads may call this at once, each with its own `search`.
    void nearest(double const* query, std::uint32_t root, std::size_t count, Search& search) const;

private:
    struct Node {
        std::uint32_t begin = 0;
        std::uint32_t end = 0;
        std::uint32_t children = 0;    // the first of two adjacent nodes; 0 for a leaf
        std::uint32_t lowest_row = 0;  // breaks ties between equal distances
    };
    struct PendingNode {
        double squared;
        std::uint32_t node;
    };

    void grow(RowGroups const& batches);
    /// Computes the box of a node, and sorts its points into the halves of its children.
    void finish_node(std::size_t node);
    void split(Node const& node, std::size_t axis);
    std::size_t widest_axis(std::size_t node) const noexcept;
    double squared_to_box(double const* query, std::size_t node) const noexcept;
    /// No answer is farther away than this square: the last query's points are there.
    double bound_of(double const* query, std::uint32_t root, std::size_t count,
                    Search const& search) const noexcept;
    void scan_leaf(double const* query, Node const& leaf, std::size_t count, double bound,
                   std::vector<Candidate>& best) const;

    Points source_;  // in the order of the rows
    std::size_t axes_;
    std::unique_ptr<KeyGroups> batches_;  // null without batches
    std::vector<std::uint32_t> order_;    // rows, the points of a node together
    std::vector<Node> nodes_;             // roots first
    std::vector<double> boxes_;           // lower corner, upper corner of each node
    std::vector<double> points_;          // in the order of `order_`
};

struct KdTree::Search {
    std::vector<Candidate> best;  // the answer of the last query
    std::uint32_t root = KeyGroups::kNoGroup;
    std::vector<PendingNode> open;
};

}  // namespace tensorhash::coords
