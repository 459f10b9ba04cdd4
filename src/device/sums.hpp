// The sums of rows and offsets that a store adds, and checks of rows that wait for their result.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "backend/coord_errors.hpp"
#include "device/distinct_rows.hpp"
#include "device/expand.hpp"
#include "device/kernel_maps.hpp"
#include "device/transfers.hpp"

namespace tensorhash::device {

/// Sums per launch: enough rows for a GPU, little memory.
inline constexpr std::uint64_t kSumRows = std::uint64_t{1} << 22;

/// [columns, 2]: the lowest and the highest number of each column.
inline std::vector<std::int64_t> limits_of_columns(backend::RowRange range, std::uint32_t columns) {
    std::vector<std::int64_t> numbers;
    for (std::uint32_t c = 0; c < columns; ++c) {
        backend::Limits const limits = backend::limits_of(range, c);
        numbers.push_back(limits.low);
        numbers.push_back(limits.high);
    }
    return numbers;
}

/// Finds the first number out of range, by row. `first` is kNoElement before.
template <class Queue>
void find_outside(Queue& queue, RowsView const& view, std::uint64_t rows, backend::RowRange range,
                  std::uint64_t* first) {
    auto const limits = upload(queue, limits_of_columns(range, view.columns));
    queue.launch(rows, FindOutside{view, limits.data(), false, first, rows});
}

/// Throws ValueError if a number of int64 rows does not fit int32. Waits, but not for int32 rows.
template <class Queue>
void check_int32(Queue& queue, CoordRows const& rows, std::string_view argument) {
    if (!rows.wide() || rows.rows == 0) {
        return;
    }
    FirstFound<Queue> const first(queue);
    find_outside(queue, view_of(rows), rows.rows, backend::RowRange::Int32, first.data());
    if (std::uint64_t const at = first.read(); at != kNoElement) {
        backend::fail_not_int32(argument, read_number(queue, rows, at));
    }
}

/// base[n] + offsets[k], offset by offset.
template <class Queue>
class Sums {
public:
    /// Throws if a number does not fit int32.
    Sums(Queue& queue, CoordRows const& base, CoordRows const& offsets, backend::RowRange range)
        : queue_(&queue), base_(base), offsets_(offsets), range_(range), outside_(queue) {
        check_int32(queue, base, "base");
        check_int32(queue, offsets, "offsets");
    }

    /// The distinct sums.
    DistinctRows<Queue> distinct() {
        std::uint64_t const count = base_.rows * offsets_.rows;
        std::uint64_t const chunk = std::min(count, kSumRows);
        auto const limits = upload(*queue_, limits_of_columns(range_, base_.columns));
        DistinctRows<Queue> distinct(*queue_, {Dtype::Int32, {base_.columns}}, chunk);
        Array<Queue, std::int32_t> const sums(*queue_, chunk * base_.columns);
        for (std::uint64_t begin = 0; begin < count; begin += chunk) {
            std::uint64_t const rows = std::min(chunk, count - begin);
            queue_->launch(
                rows, SumRows<std::int32_t>{view_of(base_), view_of(offsets_), base_.rows, begin,
                                            sums.data(), limits.data(), outside_.data(), rows});
            distinct.add(sums.data(), rows);
        }
        return distinct;
    }

    /// Throws ValueError if a sum is out of range. Waits.
    void check() const {
        std::uint64_t const at = outside_.read();
        if (at == kNoElement) {
            return;
        }
        auto const column = static_cast<std::uint32_t>(at % base_.columns);
        std::uint64_t const row = at / base_.columns % base_.rows;
        std::uint64_t const k = at / base_.columns / base_.rows;
        std::int64_t const sum = read_number(*queue_, base_, row * base_.columns + column).value +
                                 read_number(*queue_, offsets_, k * base_.columns + column).value;
        backend::fail_sum({row, column, sum}, k, range_);
    }

private:
    Queue* queue_;
    CoordRows const& base_;
    CoordRows const& offsets_;
    backend::RowRange range_;
    FirstFound<Queue> outside_;
};

}  // namespace tensorhash::device
