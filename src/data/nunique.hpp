// The number of distinct values in each group.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "data/columns.hpp"
#include "tensorhash/hash_map.hpp"

namespace tensorhash::data {

/// Distinct (group, value) pairs of one column, kept from batch to batch.
class DistinctValues {
public:
    DistinctValues();

    /// Adds rows: the group and the value of each. Floats compare as keys: -0.0 is 0.0, all NaNs
    /// are one value.
    void add(Column const& column, std::uint32_t const* groups, std::size_t rows);
    /// Adds the pairs of another column; its group i is groups[i] here.
    void merge(DistinctValues const& other, std::uint32_t const* groups);

    /// out[group * width] = the number of distinct values of the group, for all groups.
    void count(std::size_t groups, std::size_t width, std::int64_t* out) const;

private:
    HashSet pairs_;
};

}  // namespace tensorhash::data
