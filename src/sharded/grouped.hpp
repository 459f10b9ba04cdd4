// A batch while the shards work on it: rows grouped by shard, and the shards' answers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/routed.hpp"
#include "map/results.hpp"
#include "runtime/memory.hpp"
#include "tensorhash/sharded/sharded_map.hpp"

namespace tensorhash::sharded {

using backend::Answers;
using backend::Routed;
using map::CheckedBatch;

/// The shards' answers, grouped like their rows, and memory for the answers in the caller's order:
/// after the shards have changed, nothing may fail.
class Grouped {
public:
    explicit Grouped(Routed const& routed)
        : routed_(routed), indices_(routed.rows() * sizeof(std::uint32_t)),
          mask_(routed.shards() == 1 ? 0 : routed.rows()),
          out_{{}, Tensor::empty(with_rows(routed.rows(), {}), Dtype::Bool)} {}
    /// Also allocates memory for located().
    static Grouped with_indices(Routed const& routed);

    Answers of(std::size_t shard) noexcept {
        return {indices() + routed_.begin(shard), mask_of(shard)};
    }
    /// The answers of all shards in the caller's order.
    ShardedLocated located() noexcept;
    Tensor mask() noexcept;

private:
    std::uint32_t* indices() noexcept { return reinterpret_cast<std::uint32_t*>(indices_.data()); }
    /// With one shard this is the caller's mask.
    unsigned char* mask_of(std::size_t shard) noexcept {
        return routed_.shards() == 1 ? static_cast<unsigned char*>(out_.mask.data())
                                     : mask_.data() + routed_.begin(shard);
    }
    void ungroup(std::int64_t* global) noexcept;

    Routed const& routed_;
    runtime::Block indices_;
    runtime::Block mask_;
    ShardedLocated out_;
};

/// The rows of a column, grouped by shard. With one shard these are the caller's rows.
class GroupedColumn {
public:
    GroupedColumn(Routed const& routed, CheckedBatch const& batch, std::size_t bytes);
    backend::Bytes from(std::size_t row) const noexcept { return rows_ + row * row_bytes_; }

private:
    std::size_t row_bytes_;
    runtime::Block copy_;
    backend::Bytes rows_;
};

/// The caller's row for each row of a shard.
class RowOrder {
public:
    explicit RowOrder(Routed const& routed);
    /// Null with one shard: its rows are the caller's.
    std::uint32_t const* of(std::size_t shard) const noexcept {
        auto const* const rows = reinterpret_cast<std::uint32_t const*>(rows_.data());
        return rows == nullptr ? nullptr : rows + routed_.begin(shard);
    }

private:
    Routed const& routed_;
    runtime::Block rows_;
};

}  // namespace tensorhash::sharded
