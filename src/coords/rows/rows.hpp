// Checks the range of coordinates, and converts int64 rows to int32 without wrapping.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "backend/coord_errors.hpp"
#include "backend/coord_rows.hpp"
#include "cpu/flat_engine.hpp"
#include "tensorhash/step/int32.hpp"
#include "tensorhash/tensor.hpp"

namespace tensorhash::coords {

using backend::CoordRows;
using backend::row_of;
using backend::RowRange;

inline constexpr std::uint32_t kMaxColumns = backend::kMaxCoordColumns;

/// The rows as the engine's loops take them; at most 4 columns.
inline cpu::FlatRows flat_rows(CoordRows const& rows) noexcept {
    return {rows.tensor.data(), rows.columns, rows.wide()};
}

using backend::Limits;
using backend::limits_of;

using step::fits_int32;

/// One number of the rows.
std::int64_t value_at(CoordRows const& rows, std::size_t row, std::uint32_t column) noexcept;

/// Whether every number is in range. Runs on all threads.
bool all_in_range(CoordRows const& rows, RowRange range);

/// The same rows as int32. Throws ValueError with row, column and value if an int64 does not fit.
CoordRows narrowed(CoordRows const& rows, std::string_view argument);

/// The same rows as int32 in new memory, because the caller's array may change during the call.
CoordRows narrowed_copy(CoordRows const& rows, std::string_view argument);

/// Whether both are the same int32 rows in the same order.
bool same_rows(CoordRows const& a, CoordRows const& b);

/// Queries as int32, and a list of the queries that do not fit int32. Those equal no row.
struct NarrowQueries {
    CoordRows rows;
    std::vector<std::size_t> outside;
    /// Writes -1 for every query in `outside`.
    void hide_outside(std::int32_t* found) const;
};
NarrowQueries narrow_queries(CoordRows const& queries);

/// int32: every i with first[i] == i, ascending.
Tensor own_rows(Tensor const& first);

/// Throws ValueError that names the first row out of range, its column and value. Call this only
/// if such a row exists.
[[noreturn]] void fail_range(CoordRows const& rows, std::string_view argument, RowRange range);

}  // namespace tensorhash::coords
