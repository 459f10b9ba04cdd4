// Makes sums chunk by chunk, and drops those that are in the index or equal an earlier sum.
#include "coords/tables/new_rows.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <string>
#include <vector>

#include "runtime/parallel.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::coords {
namespace {

using Rows = std::vector<std::int32_t>;

// Sums per chunk: enough work for every thread, few enough for the cache.
constexpr std::size_t kChunkRows = std::size_t{1} << 16;

CoordRows view_of(Rows const& rows, std::uint32_t columns) {
    std::size_t const count = rows.size() / columns;
    Shape shape{static_cast<std::int64_t>(count), static_cast<std::int64_t>(columns)};
    return {Tensor::borrow(static_cast<void const*>(rows.data()), std::move(shape), Dtype::Int32),
            count, columns};
}

/// Sum i is base[i % N] + offsets[i / N].
class Sums {
public:
    Sums(CoordRows const& base, CoordRows const& offsets, RowRange range)
        : base_(base), offsets_(offsets), range_(range) {
        for (std::uint32_t column = 0; column < kMaxColumns; ++column) {
            limits_[column] = limits_of(range, column);
        }
    }

    std::size_t count() const noexcept { return base_.rows * offsets_.rows; }

    /// The sums [begin, end).
    Rows rows(std::size_t begin, std::size_t end) const {
        std::uint32_t const columns = base_.columns;
        Rows sums((end - begin) * columns);
        std::atomic<bool> fit{true};
        runtime::for_ranges(end - begin, runtime::kGrain, [&](std::size_t from, std::size_t to) {
            bool here = true;
            for (std::size_t i = from; i < to; ++i) {
                for (std::uint32_t c = 0; c < columns; ++c) {
                    std::int64_t const sum = at(begin + i, c);
                    sums[i * columns + c] = static_cast<std::int32_t>(sum);
                    here &= limits_[c].has(sum);
                }
            }
            if (!here) {
                fit.store(false, std::memory_order_relaxed);
            }
        });
        if (!fit.load(std::memory_order_relaxed)) {
            fail(begin, end);
        }
        return sums;
    }

private:
    std::int64_t at(std::size_t i, std::uint32_t column) const {
        std::uint32_t const columns = base_.columns;
        return std::int64_t{base_.data()[i % base_.rows * columns + column]} +
               offsets_.data()[i / base_.rows * columns + column];
    }

    [[noreturn]] void fail(std::size_t begin, std::size_t end) const {
        for (std::size_t i = begin; i < end; ++i) {
            for (std::uint32_t c = 0; c < base_.columns; ++c) {
                if (!limits_[c].has(at(i, c))) {
                    backend::fail_sum({i % base_.rows, c, at(i, c)}, i / base_.rows, range_);
                }
            }
        }
        throw ValueError("base: expected sums in range");  // not reached
    }

    CoordRows const& base_;
    CoordRows const& offsets_;
    RowRange range_;
    std::array<Limits, kMaxColumns> limits_{};
};

/// Keeps the rows that pass, in order. Works in place, so it is serial.
template <class Passes>
void keep_rows(Rows& rows, std::uint32_t columns, Passes const& passes) {
    std::size_t kept = 0;
    std::size_t const count = rows.size() / columns;
    for (std::size_t i = 0; i < count; ++i) {
        if (passes(i)) {
            std::copy_n(rows.begin() + static_cast<std::ptrdiff_t>(i * columns), columns,
                        rows.begin() + static_cast<std::ptrdiff_t>(kept++ * columns));
        }
    }
    rows.resize(kept * columns);
}

void drop_found(Rows& rows, std::uint32_t columns, CoordIndex const& index) {
    CoordRows const view = view_of(rows, columns);
    std::vector<std::int32_t> found(view.rows);
    index.find(view, found.data());
    keep_rows(rows, columns, [&](std::size_t i) { return found[i] < 0; });
}

void drop_repeats(Rows& rows, std::uint32_t columns) {
    CoordRows const view = view_of(rows, columns);
    CoordIndex const index(view);
    if (index.distinct() == view.rows) {
        return;
    }
    std::vector<std::int32_t> first(view.rows);
    index.find(view, first.data());
    keep_rows(rows, columns,
              [&](std::size_t i) { return first[i] == static_cast<std::int32_t>(i); });
}

}  // namespace

CoordRows new_rows(CoordIndex const& known, CoordRows const& base, CoordRows const& offsets,
                   RowRange range) {
    std::uint32_t const columns = base.columns;
    Sums const sums(base, offsets, range);
    Rows fresh;
    CoordIndex index(view_of(fresh, columns));
    std::size_t const step = std::max(kChunkRows, base.rows);
    for (std::size_t begin = 0; begin < sums.count(); begin += step) {
        Rows rows = sums.rows(begin, std::min(sums.count(), begin + step));
        drop_found(rows, columns, known);
        drop_found(rows, columns, index);
        drop_repeats(rows, columns);
        std::size_t const after = known.rows().rows + (fresh.size() + rows.size()) / columns;
        if (after > backend::kMaxCoordRows) {
            throw ValueError("offsets: a table holds at most " +
                             std::to_string(backend::kMaxCoordRows) +
                             " rows; these offsets would make at least " + std::to_string(after));
        }
        fresh.insert(fresh.end(), rows.begin(), rows.end());
        index.extend(view_of(fresh, columns));
    }
    CoordRows const view = view_of(fresh, columns);
    return {view.tensor.clone(), view.rows, columns};
}

}  // namespace tensorhash::coords
