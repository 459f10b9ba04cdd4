// Rows of integer coordinates as callers hand them over: checked, contiguous, and brought to int32 without a wrap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "cpu/flat_engine.hpp"
#include "tensorhash/tensor.hpp"

namespace tensorhash::coords {

/// int32 or int64 [rows, columns], contiguous.
struct CoordRows {
    Tensor tensor;
    std::size_t rows = 0;
    std::uint32_t columns = 0;

    bool wide() const noexcept { return tensor.dtype() == Dtype::Int64; }
    /// For the engine's loops; at most 4 columns.
    cpu::FlatRows flat() const noexcept { return {tensor.data(), columns, wide()}; }
    /// The rows of an int32 tensor.
    std::int32_t const* data() const noexcept {
        return static_cast<std::int32_t const*>(tensor.data());
    }
};

/// The numbers that the rows of a table may hold.
enum class RowRange : std::uint8_t {
    Int32,      // all of int32
    Packed64,   // those of the 64-bit packed key: a batch, then coordinates
    Packed128,  // 17 bits in every column
};

/// From low to high.
struct Limits {
    std::int64_t low;
    std::int64_t high;
    bool has(std::int64_t value) const noexcept { return value >= low && value <= high; }
};
Limits limits_of(RowRange range, std::uint32_t column) noexcept;

/// How many columns rows may have.
struct Columns {
    std::uint32_t least;
    std::uint32_t most;
};

/// TypeError, ValueError or DeviceError that names `argument` unless it is int32 or int64 [N, least..most]. Any strides;
/// an empty list, (0,), is no rows of `least` columns.
CoordRows check_rows(Tensor const& tensor, std::string_view argument, Columns columns);
inline CoordRows check_rows(Tensor const& tensor, std::string_view argument,
                            std::uint32_t columns) {
    return check_rows(tensor, argument, Columns{columns, columns});
}

/// One number of the rows.
std::int64_t value_at(CoordRows const& rows, std::size_t row, std::uint32_t column) noexcept;

/// Whether every number is in range. On all threads.
bool all_in_range(CoordRows const& rows, RowRange range);

/// The same rows as int32; ValueError naming row, column and value if an int64 does not fit.
CoordRows narrowed(CoordRows const& rows, std::string_view argument);

/// Queries as int32, and those of them that have a number beyond int32: no row is equal to them.
struct NarrowQueries {
    CoordRows rows;
    std::vector<std::size_t> outside;
    /// -1 for the rows outside.
    void hide_outside(std::int32_t* found) const;
};
NarrowQueries narrow_queries(CoordRows const& queries);

/// int32: the i with first[i] == i, ascending.
Tensor own_rows(Tensor const& first);

/// ValueError naming the first row out of range, its column and value; there must be one.
[[noreturn]] void fail_range(CoordRows const& rows, std::string_view argument, RowRange range);

}  // namespace tensorhash::coords
