// Builds the nodes of a tree from records: the coordinates of a point, then its row as a number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "coords/rows/row_groups.hpp"
#include "cpu/tree_engine.hpp"

namespace tensorhash::coords {

/// Records [begin, begin + count).
struct RecordRange {
    std::uint32_t begin;
    std::uint32_t count;
};

/// `width` float64 per record. The row makes the lowest row of a box the lower end of one more
/// axis.
struct Records {
    double* data;
    double* scratch;  // as large
    std::size_t width;

    std::size_t axes() const noexcept { return width - 1; }
};

struct TreeNodes {
    std::vector<cpu::TreeNode> nodes;
    std::vector<double> boxes;
    std::vector<std::uint32_t> roots;  // one per range
};

/// Builds one tree per range, and sorts the records so that those of a leaf lie together. A leaf
/// names its first record.
TreeNodes build_trees(Records const& records, std::vector<RecordRange> const& ranges);

}  // namespace tensorhash::coords
