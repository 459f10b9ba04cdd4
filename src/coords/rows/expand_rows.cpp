// Expands or strides rows: arithmetic on rows, then a table that keeps the distinct ones.
#include "coords/rows/expand_rows.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "backend/coord_errors.hpp"
#include "coords/rows/distinct_rows.hpp"
#include "coords/rows/expand_blocks.hpp"
#include "runtime/parallel.hpp"

namespace tensorhash::coords {
namespace {

// Below this many sums, a table of the steps of the offsets costs more than it saves.
constexpr std::size_t kFewSums = 8192;

/// Throws ValueError if a coordinate plus an offset does not fit Int.
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
            backend::fail_offsets(dtype_of<Int>);
        }
        Int const least = static_cast<Int>(std::numeric_limits<Int>::min() - low);
        Int const most = static_cast<Int>(std::numeric_limits<Int>::max() - high);
        for (std::size_t row = 0; row < rows.rows; ++row) {
            Int const value = values[row * rows.columns + axis + 1];
            if (value >= least && value <= most) continue;
            backend::fail_expansion({row, static_cast<std::uint32_t>(axis + 1), value},
                                    dtype_of<Int>);
        }
    }
}

/// Writes sums [begin, end): sum i is row i % rows plus offset i / rows.
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
BatchedCoords expand(BatchedRows& rows, std::span<std::int64_t const> offsets, std::size_t chunk) {
    check_range<Int>(rows, offsets);
    std::size_t const count = rows.rows * (offsets.size() / (rows.columns - 1));
    if (count >= kFewSums) {
        if (auto made = expand_by_blocks(rows, offsets)) return std::move(*made);
    }
    DistinctRows distinct(dtype_of<Int>, rows.columns);
    distinct.add(rows.tensor.data(), rows.rows);
    chunk = std::min({chunk, count, static_cast<std::size_t>(backend::kMaxCoordRows)});
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
BatchedCoords divide(BatchedRows const& rows, std::span<std::int64_t const> stride) {
    std::vector<Int> by;
    for (std::int64_t const value : stride) by.push_back(static_cast<Int>(value));
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
    DistinctRows distinct(dtype_of<Int>, rows.columns);
    distinct.add(values, rows.rows);
    return distinct.by_batch(rows.batches);
}

}  // namespace

BatchedCoords expand_rows(backend::CoordRows const& coords, std::span<std::int64_t const> offsets,
                          std::size_t chunk_rows, std::optional<std::int64_t> batches) {
    BatchedRows rows = copy_batched_rows(coords, batches);
    return coords.wide() ? expand<std::int64_t>(rows, offsets, chunk_rows)
                         : expand<std::int32_t>(rows, offsets, chunk_rows);
}

BatchedCoords stride_rows(backend::CoordRows const& coords, std::span<std::int64_t const> stride,
                          std::optional<std::int64_t> batches) {
    BatchedRows const rows = copy_batched_rows(coords, batches);
    return coords.wide() ? divide<std::int64_t>(rows, stride) : divide<std::int32_t>(rows, stride);
}

}  // namespace tensorhash::coords
