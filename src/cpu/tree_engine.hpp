// Searches a tree of boxes over points. A table of functions, one per instruction-set level.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tensorhash::cpu {

/// Children of a node, and points that are measured at once.
inline constexpr std::size_t kTreeLanes = 4;
/// Most points of a leaf: one bit each in a mask, and whole groups of lanes.
inline constexpr std::size_t kLeafPoints = 24;
/// Most nodes that wait during a search. A split leaves at most 7/8 of the points on one side, so
/// 2^32 points are at most 142 splits deep: 71 nodes, and each leaves three children waiting.
inline constexpr std::size_t kMaxPending = 256;

struct TreeNode {
    std::uint32_t child[kTreeLanes];       // a node, or the first point of a leaf
    std::uint32_t points[kTreeLanes];      // of a leaf; 0 for a node
    std::uint32_t lowest_row[kTreeLanes];  // breaks ties between equal distances
    std::uint32_t children;
};

struct TreeView {
    TreeNode const* nodes;
    double const* boxes;        // per node and axis: lower ends of all lanes, upper ends of all
    double const* points;       // per axis: `stride` numbers, readable kTreeLanes beyond the last
    std::uint32_t const* rows;  // of the points
    std::size_t stride;
    std::size_t axes;
};

/// A possible neighbour. Nearer ones sort first; of equally near ones the lower row.
struct Candidate {
    double squared;
    std::uint32_t row;

    friend bool operator<(Candidate const& a, Candidate const& b) noexcept {
        return a.squared < b.squared || (a.squared == b.squared && a.row < b.row);
    }
};

/// Where a search appends candidates. `grow` makes room for kLeafPoints more.
struct CandidateSink {
    Candidate* at;
    Candidate* end;
    void (*grow)(CandidateSink&);
};

struct TreeLoops {
    /// Writes the `count` nearest points with a squared distance of at most `bound`, sorted.
    /// Returns their number: fewer than `count` if there are not that many. `count` must not be 0.
    std::size_t (*nearest)(TreeView const&, std::uint32_t root, double const* query,
                           std::size_t count, double bound, Candidate* best);
    /// Appends all points with a squared distance of at most `squared`, in any order.
    void (*within)(TreeView const&, std::uint32_t root, double const* query, double squared,
                   CandidateSink& sink);
};

/// The loops for this machine.
TreeLoops const& tree_loops();

}  // namespace tensorhash::cpu
