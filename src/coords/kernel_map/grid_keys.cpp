// Lays out a grid: takes the bounds of the rows, then packs as many columns per word as fit.
#include "coords/kernel_map/grid_keys.hpp"

#include <mutex>

#include "runtime/parallel.hpp"

namespace tensorhash::coords {
namespace {

constexpr std::uint64_t kWordLimit = std::uint64_t{1} << 62;

/// Packs columns from last to first, as many per word as fit. The last word is the least
/// significant.
void pack_words(Grid& grid) {
    std::array<std::size_t, kMaxColumns> from_end{};
    std::size_t word = 0;
    std::uint64_t weight = 1;
    for (std::size_t c = grid.columns; c-- > 0;) {
        Grid::Column& column = grid.column[c];
        if (weight > kWordLimit / column.extent) {
            ++word;
            weight = 1;
        }
        column.weight = weight;
        from_end[c] = word;
        weight *= column.extent;
    }
    grid.words = word + 1;
    for (std::size_t c = 0; c < grid.columns; ++c) {
        Grid::Column& column = grid.column[c];
        column.word = word - from_end[c];
        grid.largest[column.word] += (column.extent - 1) * column.weight;
    }
}

}  // namespace

Bounds bounds_of(CoordRows const& rows) {
    Bounds bounds;
    std::copy_n(rows.data(), rows.columns, bounds.low.begin());
    bounds.high = bounds.low;
    std::mutex mutex;
    runtime::for_ranges(rows.rows, runtime::kGrain, [&](std::size_t begin, std::size_t end) {
        std::array<std::int32_t, kMaxColumns> low{};
        std::array<std::int32_t, kMaxColumns> high{};
        std::copy_n(row_of(rows, begin), rows.columns, low.begin());
        high = low;
        for (std::size_t i = begin; i < end; ++i) {
            for (std::size_t c = 0; c < rows.columns; ++c) {
                low[c] = std::min(low[c], row_of(rows, i)[c]);
                high[c] = std::max(high[c], row_of(rows, i)[c]);
            }
        }
        std::lock_guard lock(mutex);
        for (std::size_t c = 0; c < rows.columns; ++c) {
            bounds.low[c] = std::min<std::int64_t>(bounds.low[c], low[c]);
            bounds.high[c] = std::max<std::int64_t>(bounds.high[c], high[c]);
        }
    });
    return bounds;
}

Grid::Grid(KernelMapRequest const& request) : columns(request.in.columns) {
    Bounds const bounds = bounds_of(request.in);
    for (std::size_t c = 0; c < columns; ++c) {
        Column& at = column[c];
        at.in_low = bounds.low[c];
        at.in_high = bounds.high[c];
        if (c > 0) {
            std::size_t const axis = c - 1;
            at.first = request.offset(0)[axis];
            at.last = request.offset(request.all - 1)[axis];
            at.scale = request.stride[axis];
        }
        std::int64_t const span = at.last - at.first;
        at.base = at.in_low - span;
        at.extent = static_cast<std::uint64_t>(at.in_high - at.in_low + 2 * span + 1);
    }
    pack_words(*this);
}

}  // namespace tensorhash::coords
