// Folds: what is kept per group while rows are added, and how a row changes it. An aggregate is
// read from one or two folds; several aggregates may share one.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensorhash/dtype.hpp"

namespace tensorhash::data {

/// Values of all dtypes are widened to 8 bytes in one of these types.
enum class Domain : std::uint8_t { Signed, Unsigned, Double };

Domain domain_of(Dtype dtype) noexcept;

enum class FoldKind : std::uint8_t {
    Count,
    Sum,
    DoubleSum,  // of values converted to double: the mean of integers does not wrap
    Prod,
    Min,
    Max,
    Any,
    All,
    Moments,  // count, mean and sum of squared deviations (Welford)
    First,    // value, and whether there is one
    Last,
    ArgMin,  // value, and its row or -1
    ArgMax,
};

/// Rows to add: the group and the widened value of each row. The row number is first_row + rows[i],
/// or first_row + i without `rows`.
struct FoldRows {
    std::uint32_t const* groups;
    std::uint64_t const* values;
    std::uint32_t const* rows;
    std::int64_t first_row;
    std::size_t count;
};

/// The functions of one fold. The state of a group is `words` words of 8 bytes.
struct FoldOps {
    std::size_t words;
    /// Fills the states of groups [begin, end) with the identity: adding a row gives that row.
    void (*start)(std::uint64_t* states, std::size_t begin, std::size_t end);
    /// Adds rows in order.
    void (*add)(std::uint64_t* states, FoldRows const& rows);
    /// Joins state i of `other` to the state of group groups[i]. Row numbers of `other` grow by
    /// `rows_before`.
    void (*merge)(std::uint64_t* states, std::uint32_t const* groups, std::uint64_t const* other,
                  std::size_t count, std::int64_t rows_before);
};

FoldOps const& fold_ops(FoldKind kind, Domain domain);

}  // namespace tensorhash::data
