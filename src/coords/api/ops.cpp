// Expanding and striding: arithmetic on rows, then a table that keeps the distinct ones.
#include "tensorhash/coords/ops.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "coords/rows/distinct.hpp"
#include "runtime/parallel.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::coords {
namespace {

// Sums at a time where the caller names no number of offsets: enough for every thread, few enough to stay in cache.
constexpr std::size_t kChunkRows = std::size_t{1} << 17;

std::string with_dtype(char const* text, Dtype dtype) { return text + std::string(name(dtype)); }

/// The least and the greatest coordinate of each axis must stay within Int under every offset.
template <class Int>
void check_range(BatchedRows const& rows, std::span<std::int64_t const> offsets) {
    std::size_t const axes = rows.columns - 1;
    auto const values = rows.tensor.as<Int>();
    for (std::size_t axis = 0; axis < axes; ++axis) {
        std::int64_t low = 0;
        std::int64_t high = 0;
        for (std::size_t i = axis; i < offsets.size(); i += axes) {
            low = std::min(low, offsets[i]);
            high = std::max(high, offsets[i]);
        }
        if (low < std::numeric_limits<Int>::min() || high > std::numeric_limits<Int>::max()) {
            throw ValueError(
                with_dtype("kernel_size, kernel_dilation: offsets do not fit ", dtype_of<Int>));
        }
        Int const least = static_cast<Int>(std::numeric_limits<Int>::min() - low);
        Int const most = static_cast<Int>(std::numeric_limits<Int>::max() - high);
        for (std::size_t row = 0; row < rows.rows; ++row) {
            Int const value = values[row * rows.columns + axis + 1];
            if (value >= least && value <= most) continue;
            throw ValueError("coords: row " + std::to_string(row) + ", column " +
                             std::to_string(axis + 1) + ": " + std::to_string(value) +
                             with_dtype(" plus an offset does not fit ", dtype_of<Int>));
        }
    }
}

/// Sums [begin, end) of all: sum i is row i % rows plus offset i / rows.
template <class Int>
void sum_rows(BatchedRows const& rows, std::span<std::int64_t const> offsets, std::size_t begin,
              std::size_t end, Int* out) {
    std::size_t const columns = rows.columns;
    std::size_t const axes = columns - 1;
    auto const values = rows.tensor.as<Int>();
    runtime::for_ranges(end - begin, runtime::kGrain, [&](std::size_t first, std::size_t last) {
        for (std::size_t i = first; i < last; ++i) {
            Int const* const from = &values[(begin + i) % rows.rows * columns];
            std::int64_t const* const by = &offsets[(begin + i) / rows.rows * axes];
            Int* const to = out + i * columns;
            to[0] = from[0];
            for (std::size_t axis = 0; axis < axes; ++axis) {
                to[axis + 1] = static_cast<Int>(from[axis + 1] + by[axis]);
            }
        }
    });
}

template <class Int>
BatchedCoords expand(BatchedRows const& rows, std::span<std::int64_t const> offsets,
                     std::size_t chunk) {
    check_range<Int>(rows, offsets);
    Distinct distinct(dtype_of<Int>, rows.columns);
    distinct.add(rows.tensor.data(), rows.rows);
    std::size_t const count = rows.rows * (offsets.size() / (rows.columns - 1));
    chunk = std::min({chunk, count, static_cast<std::size_t>(table::kMaxEntries)});
    runtime::Block sums(chunk * rows.columns * sizeof(Int));
    auto* const out = reinterpret_cast<Int*>(sums.data());
    for (std::size_t begin = 0; begin < count; begin += chunk) {
        std::size_t const end = std::min(count, begin + chunk);
        sum_rows<Int>(rows, offsets, begin, end, out);
        distinct.add(out, end - begin);
    }
    return distinct.by_batch(rows.batches);
}

template <class Int>
BatchedCoords stride(BatchedRows const& rows, std::vector<Int> const& by) {
    Tensor strided = rows.tensor.clone();
    auto* const values = static_cast<Int*>(strided.data());
    runtime::for_ranges(rows.rows, runtime::kGrain, [&](std::size_t begin, std::size_t end) {
        for (std::size_t row = begin; row < end; ++row) {
            Int* const axes = values + row * rows.columns + 1;
            for (std::size_t axis = 0; axis < by.size(); ++axis) {
                Int const quotient = static_cast<Int>(axes[axis] / by[axis]);
                bool const inexact = quotient * by[axis] != axes[axis];
                axes[axis] = static_cast<Int>(quotient - (inexact && axes[axis] < 0 ? 1 : 0));
            }
        }
    });
    Distinct distinct(dtype_of<Int>, rows.columns);
    distinct.add(values, rows.rows);
    return distinct.by_batch(rows.batches);
}

template <class Int>
std::vector<Int> check_stride(std::vector<std::int64_t> const& by, std::size_t axes) {
    if (by.size() != axes) {
        throw ValueError("stride: expected one int or " + std::to_string(axes) +
                         ", one per axis, got " + std::to_string(by.size()));
    }
    std::vector<Int> out;
    for (std::int64_t const value : by) {
        if (value < 1 || value > std::numeric_limits<Int>::max()) {
            throw ValueError("stride: expected 1 to " +
                             std::to_string(std::numeric_limits<Int>::max()) + ", got " +
                             std::to_string(value));
        }
        out.push_back(static_cast<Int>(value));
    }
    return out;
}

}  // namespace

BatchedCoords expand_coords(Tensor const& coords, Tensor const& offsets, std::int64_t chunk,
                            std::optional<std::int64_t> batches) {
    BatchedRows const rows = check_batched_rows(coords, batches);
    if (offsets.dtype() != Dtype::Int64 || offsets.rank() != 2 ||
        offsets.shape()[1] + 1 != static_cast<std::int64_t>(rows.columns)) {
        throw ValueError("offsets: expected int64 (K, " + std::to_string(rows.columns - 1) +
                         "), got " + std::string(name(offsets.dtype())) + " " +
                         to_string(offsets.shape()));
    }
    if (chunk < 0) {
        throw ValueError("kernel_batch: expected 1 or more, got " + std::to_string(chunk));
    }
    // At most as many offsets as there are, so that the product stays small.
    std::size_t const size =
        chunk == 0 ? kChunkRows
                   : rows.rows * static_cast<std::size_t>(std::min(chunk, offsets.shape()[0]));
    Tensor const flat = offsets.contiguous();
    auto const span = flat.as<std::int64_t>();
    return coords.dtype() == Dtype::Int32 ? expand<std::int32_t>(rows, span, size)
                                          : expand<std::int64_t>(rows, span, size);
}

BatchedCoords stride_coords(Tensor const& coords, std::vector<std::int64_t> const& by,
                            std::optional<std::int64_t> batches) {
    BatchedRows const rows = check_batched_rows(coords, batches);
    if (coords.dtype() == Dtype::Int32) {
        return stride<std::int32_t>(rows, check_stride<std::int32_t>(by, rows.columns - 1));
    }
    return stride<std::int64_t>(rows, check_stride<std::int64_t>(by, rows.columns - 1));
}

}  // namespace tensorhash::coords
