// The checks of rows.hpp. Messages are built here, off every hot path.
#include "coords/rows/rows.hpp"

#include <atomic>
#include <cstring>
#include <string>
#include <utility>

#include "runtime/parallel.hpp"
#include "runtime/scan.hpp"
#include "tensorhash/coords/packed_key.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::coords {
namespace {

static_assert(backend::kPackedBatchMax == kBatchMax && backend::kPackedCoordMin == kCoordMin &&
              backend::kPackedCoordMax == kCoordMax);

/// Casts to int32 and returns whether every number fits.
bool narrow_into(Tensor& narrow, CoordRows const& rows) {
    narrow = Tensor::empty(rows.tensor.shape(), Dtype::Int32);
    auto const* const from = static_cast<std::int64_t const*>(rows.tensor.data());
    auto* const to = static_cast<std::int32_t*>(narrow.data());
    std::atomic<bool> all_fit{true};
    runtime::for_ranges(rows.rows, runtime::kGrain, [&](std::size_t begin, std::size_t end) {
        bool fit = true;
        for (std::size_t i = begin * rows.columns; i < end * rows.columns; ++i) {
            to[i] = static_cast<std::int32_t>(from[i]);
            fit &= to[i] == from[i];
        }
        if (!fit) {
            all_fit.store(false, std::memory_order_relaxed);
        }
    });
    return all_fit.load(std::memory_order_relaxed);
}

}  // namespace

std::int64_t value_at(CoordRows const& rows, std::size_t row, std::uint32_t column) noexcept {
    std::size_t const at = row * rows.columns + column;
    return rows.wide() ? static_cast<std::int64_t const*>(rows.tensor.data())[at] : rows.data()[at];
}

bool all_in_range(CoordRows const& rows, RowRange range) {
    std::atomic<bool> all{true};
    runtime::for_ranges(rows.rows, runtime::kGrain, [&](std::size_t begin, std::size_t end) {
        bool here = true;
        for (std::uint32_t column = 0; column < rows.columns; ++column) {
            Limits const limits = limits_of(range, column);
            for (std::size_t row = begin; row < end; ++row) {
                here &= limits.has(value_at(rows, row, column));
            }
        }
        if (!here) {
            all.store(false, std::memory_order_relaxed);
        }
    });
    return all.load(std::memory_order_relaxed);
}

CoordRows narrowed(CoordRows const& rows, std::string_view argument) {
    if (!rows.wide()) {
        return rows;
    }
    Tensor narrow;
    if (!narrow_into(narrow, rows)) {
        for (std::size_t i = 0; i < rows.rows * rows.columns; ++i) {
            auto const column = static_cast<std::uint32_t>(i % rows.columns);
            std::int64_t const value = value_at(rows, i / rows.columns, column);
            if (!fits_int32(value)) {
                backend::fail_not_int32(argument, {i / rows.columns, column, value});
            }
        }
    }
    return {std::move(narrow), rows.rows, rows.columns};
}

CoordRows narrowed_copy(CoordRows const& rows, std::string_view argument) {
    CoordRows own = narrowed(rows, argument);
    if (!rows.wide()) {
        own.tensor = own.tensor.clone();
    }
    return own;
}

bool same_rows(CoordRows const& a, CoordRows const& b) {
    if (a.rows != b.rows || a.columns != b.columns) {
        return false;
    }
    if (a.data() == b.data()) {
        return true;
    }
    std::atomic<bool> same{true};
    runtime::for_ranges(a.rows, runtime::kGrain, [&](std::size_t begin, std::size_t end) {
        std::size_t const bytes = (end - begin) * a.columns * sizeof(std::int32_t);
        if (same.load(std::memory_order_relaxed) &&
            std::memcmp(row_of(a, begin), row_of(b, begin), bytes) != 0) {
            same.store(false, std::memory_order_relaxed);
        }
    });
    return same.load(std::memory_order_relaxed);
}

NarrowQueries narrow_queries(CoordRows const& queries) {
    if (!queries.wide()) {
        return {queries, {}};
    }
    Tensor narrow;
    std::vector<std::size_t> outside;
    if (!narrow_into(narrow, queries)) {
        for (std::size_t row = 0; row < queries.rows; ++row) {
            for (std::uint32_t column = 0; column < queries.columns; ++column) {
                if (!fits_int32(value_at(queries, row, column))) {
                    outside.push_back(row);
                    break;
                }
            }
        }
    }
    return {{std::move(narrow), queries.rows, queries.columns}, std::move(outside)};
}

void NarrowQueries::hide_outside(std::int32_t* found) const {
    for (std::size_t const row : outside) {
        found[row] = -1;
    }
}

Tensor own_rows(Tensor const& first) {
    auto const rows = first.as<std::int32_t>();
    auto const is_own = [&](std::size_t row) {
        return rows[row] == static_cast<std::int32_t>(row);
    };
    Tensor own;
    runtime::select(
        runtime::cut(rows.size(), runtime::kGrain),
        [&](std::size_t begin, std::size_t end) {
            std::size_t count = 0;
            for (std::size_t row = begin; row < end; ++row) count += is_own(row);
            return count;
        },
        [&](std::size_t total) {
            own = Tensor::empty({static_cast<std::int64_t>(total)}, Dtype::Int32);
        },
        [&](std::size_t begin, std::size_t end, std::size_t place) {
            std::int32_t* to = static_cast<std::int32_t*>(own.data()) + place;
            for (std::size_t row = begin; row < end; ++row) {
                if (is_own(row)) *to++ = rows[row];
            }
        });
    return own;
}

void fail_range(CoordRows const& rows, std::string_view argument, RowRange range) {
    for (std::size_t row = 0; row < rows.rows; ++row) {
        for (std::uint32_t column = 0; column < rows.columns; ++column) {
            std::int64_t const value = value_at(rows, row, column);
            if (!limits_of(range, column).has(value)) {
                backend::fail_range(argument, {row, column, value}, range);
            }
        }
    }
    throw ValueError(std::string(argument) + ": expected coordinates in range");  // not reached
}

}  // namespace tensorhash::coords
