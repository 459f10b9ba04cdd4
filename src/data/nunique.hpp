// The number of distinct values in each group.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "backend/table_backend.hpp"
#include "data/columns.hpp"
#include "map/results.hpp"
#include "tensorhash/tensor.hpp"

namespace tensorhash::data {

/// Pairs that have all their memory but are not in their table yet. Without commit() they never
/// will be. Nothing else may use the table in the meantime.
class PreparedPairs {
public:
    PreparedPairs(backend::TableBackend& table, Tensor pairs);
    PreparedPairs(PreparedPairs&&) noexcept = default;
    PreparedPairs& operator=(PreparedPairs&&) = delete;
    ~PreparedPairs();

    void commit() noexcept;

private:
    backend::TableBackend* table_;
    Tensor pairs_;
    Located out_;
    std::unique_ptr<backend::Prepared> prepared_;
};

/// Distinct (group, value) pairs of one column, kept from batch to batch.
class DistinctValues {
public:
    DistinctValues();

    /// Prepares rows: the group and the value of each. Floats compare as keys: -0.0 is 0.0, all
    /// NaNs are one value.
    PreparedPairs prepare(Column const& column, std::uint32_t const* groups, std::size_t rows);
    /// Prepares the pairs of another column; its group i is groups[i] here.
    PreparedPairs prepare(DistinctValues const& other, std::uint32_t const* groups);

    /// out[group * width] = the number of distinct values of the group, for all groups.
    void count(std::size_t groups, std::size_t width, std::int64_t* out) const;

private:
    /// uint64 [pairs, 2]: all pairs, copied.
    Tensor pairs() const;

    std::unique_ptr<backend::TableBackend> table_;  // a set
};

}  // namespace tensorhash::data
