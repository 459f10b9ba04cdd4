// The ranges of coordinates and the messages about them, the same on every device. The functions
// are only called after a check has failed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "backend/coord_rows.hpp"
#include "tensorhash/dtype.hpp"
#include "tensorhash/export.hpp"

namespace tensorhash::backend {

// The range of the packed key, here because back ends do not know the steps.
inline constexpr std::int64_t kPackedBatchMax = 511;
inline constexpr std::int64_t kPackedCoordMin = -131072;
inline constexpr std::int64_t kPackedCoordMax = 131071;

/// From low to high, both included.
struct Limits {
    std::int64_t low;
    std::int64_t high;
    bool has(std::int64_t value) const noexcept { return value >= low && value <= high; }
};
TH_API Limits limits_of(RowRange range, std::uint32_t column) noexcept;

/// One number of an array of rows.
struct RowNumber {
    std::size_t row;
    std::uint32_t column;
    std::int64_t value;
};

/// A number does not fit int32.
[[noreturn]] TH_API void fail_not_int32(std::string_view argument, RowNumber const& at);
/// A number is outside the range of its column.
[[noreturn]] TH_API void fail_range(std::string_view argument, RowNumber const& at, RowRange range);
/// Row `at.row` of `base` plus row `offset` of `offsets` is out of range; `at.value` is the sum.
[[noreturn]] TH_API void fail_sum(RowNumber const& at, std::size_t offset, RowRange range);
/// A table that has `held` rows cannot take `added` more.
[[noreturn]] TH_API void fail_most_rows(std::string_view argument, std::size_t held,
                                        std::size_t added);
/// A table of fixed capacity has no room for the new keys of a batch.
[[noreturn]] TH_API void fail_full(std::uint64_t capacity, std::uint64_t held);
/// The same for a table of vectors.
[[noreturn]] TH_API void fail_vectors_full(std::uint64_t capacity, std::uint64_t held);

/// A batch index is not in [0, batches).
[[noreturn]] TH_API void fail_batch(std::int64_t batches, std::int64_t batch, std::size_t row);
/// The offsets of a kernel do not fit the dtype of the coordinates.
[[noreturn]] TH_API void fail_offsets(Dtype dtype);
/// A coordinate plus an offset does not fit its dtype.
[[noreturn]] TH_API void fail_expansion(RowNumber const& at, Dtype dtype);

}  // namespace tensorhash::backend
