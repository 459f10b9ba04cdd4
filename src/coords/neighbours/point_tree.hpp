// A k-d tree over the points of each batch, for the nearest points and for those within a radius. A
// grid would need a cell size, and one outlier would make any size wrong.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "coords/neighbours/search_space.hpp"
#include "coords/rows/row_groups.hpp"
#include "cpu/tree_engine.hpp"

namespace tensorhash::coords {

class PointTree {
public:
    explicit PointTree(SearchCloud const& cloud);

    std::size_t axes() const noexcept { return source_.axes; }
    cpu::TreeView view() const noexcept;
    /// The batch of each query; kNoGroup if it has no points.
    std::vector<std::uint32_t> batches_of(SearchCloud const& queries) const;
    /// The root and the points of a batch.
    std::uint32_t root(std::uint32_t batch) const noexcept { return roots_[batch]; }
    std::size_t points_in(std::uint32_t batch) const noexcept {
        return batch == KeyGroups::kNoGroup ? 0 : sizes_[batch];
    }

private:
    Points source_;
    std::unique_ptr<KeyGroups> batches_;  // null without batches
    std::vector<std::uint32_t> roots_;    // of each batch
    std::vector<std::size_t> sizes_;
    std::vector<cpu::TreeNode> nodes_;
    std::vector<double> boxes_;
    Tensor points_;
    Tensor rows_;
};

}  // namespace tensorhash::coords
