// The texts of coord_errors.hpp.
#include "backend/coord_errors.hpp"

#include <algorithm>
#include <limits>
#include <string>

#include "tensorhash/coords/types.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::backend {
namespace {

std::string place(std::string_view argument, RowNumber const& at) {
    return std::string(argument) + ": row " + std::to_string(at.row) + ", column " +
           std::to_string(at.column) + ": ";
}

}  // namespace

Limits limits_of(RowRange range, std::uint32_t column) noexcept {
    switch (range) {
        case RowRange::Packed64:
            return column == 0 ? Limits{0, kPackedBatchMax}
                               : Limits{kPackedCoordMin, kPackedCoordMax};
        case RowRange::Packed128:
            return {coords::kPacked128Min, coords::kPacked128Max};
        case RowRange::Int32:
            break;
    }
    return {std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max()};
}

void fail_not_int32(std::string_view argument, RowNumber const& at) {
    throw ValueError(place(argument, at) + "expected a number that fits int32, got " +
                     std::to_string(at.value));
}

void fail_range(std::string_view argument, RowNumber const& at, RowRange range) {
    Limits const limits = limits_of(range, at.column);
    bool const batch = range == RowRange::Packed64 && at.column == 0;
    throw ValueError(place(argument, at) +
                     (batch ? "expected a batch from " : "expected a coordinate from ") +
                     std::to_string(limits.low) + " to " + std::to_string(limits.high) + ", got " +
                     std::to_string(at.value));
}

void fail_sum(RowNumber const& at, std::size_t offset, RowRange range) {
    Limits const limits = limits_of(range, at.column);
    throw ValueError("base: row " + std::to_string(at.row) + " plus row " + std::to_string(offset) +
                     " of offsets, column " + std::to_string(at.column) + ": expected " +
                     std::to_string(limits.low) + " to " + std::to_string(limits.high) + ", got " +
                     std::to_string(at.value));
}

void fail_most_rows(std::string_view argument, std::size_t held, std::size_t added) {
    throw ValueError(std::string(argument) + ": a table holds at most " +
                     std::to_string(kMaxCoordRows) + " rows; it has " + std::to_string(held) +
                     ", got " + std::to_string(added) + " more");
}

void fail_full(std::uint64_t capacity, std::uint64_t held) {
    std::uint64_t const left = capacity - std::min(held, capacity);
    throw TableFull("capacity: this table takes " + std::to_string(capacity) +
                    " distinct keys and has " + std::to_string(held) +
                    "; the batch has more than " + std::to_string(left) +
                    " new keys; make the table with a larger capacity, or without one, so that it "
                    "grows");
}

void fail_vectors_full(std::uint64_t capacity, std::uint64_t held) {
    throw TableFull("capacity: this table takes " + std::to_string(capacity) +
                    " distinct keys and has " + std::to_string(held) +
                    "; vec_keys has more new keys than fit; make the table with a larger capacity, "
                    "or with from_keys and no capacity, so that it grows");
}

void fail_batch(std::int64_t batches, std::int64_t batch, std::size_t row) {
    throw ValueError("coords: expected batches from 0 to " + std::to_string(batches - 1) +
                     " in column 0, below num_batches, got " + std::to_string(batch) + " in row " +
                     std::to_string(row));
}

void fail_offsets(Dtype dtype) {
    throw ValueError("kernel_size, kernel_dilation: offsets do not fit " +
                     std::string(name(dtype)));
}

void fail_expansion(RowNumber const& at, Dtype dtype) {
    throw ValueError(place("coords", at) + std::to_string(at.value) +
                     " plus an offset does not fit " + std::string(name(dtype)));
}

}  // namespace tensorhash::backend
