// Rows of integers made distinct by a hash table, batch after batch of them, and listed by their first column.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "table/table.hpp"
#include "tensorhash/coords/ops.hpp"

namespace tensorhash::coords {

/// int32 or int64 [N, 1 + D], contiguous; ValueError or TypeError otherwise. The batch column is within `batches`; without
/// a number, batches are any integers, and only those that occur are listed.
struct BatchedRows {
    Tensor tensor;
    std::size_t rows = 0;
    std::size_t columns = 0;
    std::optional<std::size_t> batches{};
};
BatchedRows check_batched_rows(Tensor const& coords, std::optional<std::int64_t> batches);

/// Keeps the rows that are new, in order of first occurrence.
class Distinct {
public:
    Distinct(Dtype dtype, std::size_t columns);
    /// `rows` rows of the dtype, in memory that no other thread writes to. A table that is more
    /// than half full doubles before it takes them.
    void add(void const* data, std::size_t rows);
    /// The part of the slots that is taken.
    double load() const noexcept {
        return static_cast<double>(table_.size()) / static_cast<double>(table_.slots());
    }
    /// What there is, batch by batch: those from 0 on, or those that occur.
    BatchedCoords by_batch(std::optional<std::size_t> batches) const;

private:
    Element element_;
    table::Table table_;
    std::vector<std::uint32_t> numbers_;
    std::vector<unsigned char> mask_;
};

}  // namespace tensorhash::coords
