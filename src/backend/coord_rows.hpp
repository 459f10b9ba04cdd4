// Rows of integer coordinates as the public functions pass them to a back end.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensorhash/tensor.hpp"

namespace tensorhash::backend {

/// Maximum columns of a row: a batch index and six axes.
inline constexpr std::uint32_t kMaxCoordColumns = 7;

/// Maximum rows of one table or batch: row numbers are int32.
inline constexpr std::uint64_t kMaxCoordRows = (std::uint64_t{1} << 31) - 1;

/// Maximum batches of a result, empty ones included.
inline constexpr std::int64_t kMaxBatches = std::int64_t{1} << 24;

/// int32 or int64 [rows, columns], contiguous, on the device of the back end.
struct CoordRows {
    Tensor tensor;
    std::size_t rows = 0;
    std::uint32_t columns = 0;

    bool wide() const noexcept { return tensor.dtype() == Dtype::Int64; }
    /// The numbers of an int32 tensor.
    std::int32_t const* data() const noexcept {
        return static_cast<std::int32_t const*>(tensor.data());
    }
};

/// Row i of int32 rows in host memory.
inline std::int32_t const* row_of(CoordRows const& rows, std::size_t i) noexcept {
    return rows.data() + i * rows.columns;
}

/// The numbers that the rows of a table may hold.
enum class RowRange : std::uint8_t {
    Int32,      // all of int32
    Packed64,   // the range of the 64-bit packed key: a batch index, then coordinates
    Packed128,  // 17 bits in every column
};

}  // namespace tensorhash::backend
