// What a batch looks like while the shards have it: rows grouped by shard going in, answers coming out.
#pragma once

#include <cstddef>
#include <vector>

#include "sharded/route.hpp"
#include "table/results.hpp"
#include "tensorhash/sharded/sharded_map.hpp"

namespace tensorhash::sharded {

using table::Answers;
using table::Batch;
using table::with_rows;

/// What the shards answer, grouped as the rows they were given, and room for the same in the caller's order: once the
/// shards have changed nothing may fail.
class Grouped {
public:
    explicit Grouped(Routed const& rows)
        : routed_(rows), numbers_(rows.rows() * sizeof(std::uint32_t)), mask_(rows.rows()),
          out_{Tensor::empty(with_rows(rows.rows(), {}), Dtype::Int64),
               Tensor::empty(with_rows(rows.rows(), {}), Dtype::Bool)} {}

    Answers of(std::size_t shard) noexcept {
        return {reinterpret_cast<std::uint32_t*>(numbers_.data()) + routed_.begin(shard),
                mask_.data() + routed_.begin(shard)};
    }
    Located located(std::size_t shards) noexcept;
    Tensor mask() noexcept;

private:
    Routed const& routed_;
    runtime::Block numbers_;
    runtime::Block mask_;
    Located out_;
};

/// A column's rows, grouped; those of a shard begin at its first row.
struct GroupedColumn {
    GroupedColumn(Routed const& routed, Batch const& batch, std::size_t bytes)
        : row_bytes(bytes), rows(routed.grouped(batch.data(), bytes)) {}
    table::Bytes from(std::size_t row) const noexcept { return rows.data() + row * row_bytes; }

    std::size_t row_bytes;
    runtime::Block rows;
};

std::vector<GroupedColumn> grouped_columns(Routed const& routed, std::vector<Batch> const& batches,
                                           std::vector<Element> const& elements);

/// parts[shard][column]: where each shard's rows of each column begin.
std::vector<std::vector<table::Bytes>> parts_of(std::vector<GroupedColumn> const& columns,
                                                Routed const& routed, std::size_t shards);

}  // namespace tensorhash::sharded
