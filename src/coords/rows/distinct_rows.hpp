// Collects distinct rows of integers in a hash table, chunk by chunk, and lists them by batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "backend/coord_rows.hpp"
#include "runtime/memory.hpp"
#include "table/table.hpp"
#include "tensorhash/coords/types.hpp"

namespace tensorhash::coords {

/// A private copy of rows [N, 1 + D], and the number of batches, counted from 0. If it is nullopt,
/// batches are any integers, and only those that occur are listed.
struct BatchedRows {
    Tensor tensor;  // in `block`
    std::size_t rows = 0;
    std::size_t columns = 0;
    std::optional<std::size_t> batches{};
    std::shared_ptr<runtime::Block> block{};
};
/// Throws ValueError if `batches` is given and a row's batch is not in [0, batches).
BatchedRows copy_batched_rows(backend::CoordRows const& coords,
                              std::optional<std::int64_t> batches);

/// Keeps the rows that are new, in order of first occurrence.
class DistinctRows {
public:
    DistinctRows(Dtype dtype, std::size_t columns);
    /// Adds `rows` rows of the dtype; no other thread may write to them meanwhile. Doubles the
    /// table first if it is more than half full.
    void add(void const* data, std::size_t rows);
    /// The fraction of the slots in use.
    double load() const noexcept {
        return static_cast<double>(table_.size()) / static_cast<double>(table_.slots());
    }
    /// All rows, batch by batch: batches 0 to batches - 1, or if nullopt, those that occur.
    BatchedCoords by_batch(std::optional<std::size_t> batches) const;

private:
    Element element_;
    table::Table table_;
    std::vector<std::uint32_t> buffer_indices_;
    std::vector<unsigned char> mask_;
};

}  // namespace tensorhash::coords
