// A batch on its way to the shards and back: whose row is whose, rows grouped by shard, answers in the caller's order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/memory.hpp"
#include "table/arguments.hpp"
#include "tensorhash/sharded/policy.hpp"

namespace tensorhash::sharded {

/// int32 [N]: each row's shard. Asks the policy, and throws ValueError, naming the row, if an answer is no shard.
Tensor shards_of(table::Batch const& keys, Element const& element, ShardPolicy const& policy,
                 std::size_t shards);

/// Rows grouped by shard, within a shard in row order: that order is what keeps a batch as if in order.
class Routed {
public:
    Routed(Tensor const& shard_of_row, std::size_t shards);

    std::size_t rows() const noexcept { return begins_.back(); }
    std::size_t begin(std::size_t shard) const noexcept { return begins_[shard]; }
    std::size_t rows(std::size_t shard) const noexcept {
        return begins_[shard + 1] - begins_[shard];
    }
    /// The caller's row at each place of the grouped order.
    std::uint32_t const* order() const noexcept {
        return reinterpret_cast<std::uint32_t const*>(order_.data());
    }
    /// A copy of the rows, grouped.
    runtime::Block grouped(unsigned char const* from, std::size_t row_bytes) const;

private:
    std::vector<std::size_t> begins_;
    runtime::Block order_;
};

}  // namespace tensorhash::sharded
