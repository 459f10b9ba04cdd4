// The distinct rows of an expansion or of a stride, batch by batch.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "device/sums.hpp"
#include "device/transfers.hpp"
#include "device/values.hpp"

namespace tensorhash::device {

/// Coordinates with a batch in column 0, of any number of columns.
template <class Queue>
class BatchedRows {
public:
    /// Waits once. Throws ValueError if `batches` is given and a row's batch is not in
    /// [0, batches).
    BatchedRows(Queue& queue, Device device, CoordRows const& coords,
                std::optional<std::int64_t> batches)
        : queue_(&queue), device_(device), coords_(coords) {
        Array<Queue, Report> const report(queue, 1);
        write_one(queue, report.data(), Report{});
        std::int64_t const limit = batches.value_or(backend::kMaxBatches);
        queue.launch(coords.rows, CheckBatches{view_of(coords), limit, &report.data()->batches,
                                               &report.data()->wrong, coords.rows});
        Report const now = read_one(queue, report.data());
        if (now.wrong == kNoElement) {
            batches_ = batches ? static_cast<std::uint64_t>(*batches) : now.batches;
        } else if (batches) {
            backend::fail_batch(limit, read_number(queue, coords, now.wrong * coords.columns).value,
                                now.wrong);
        }
    }

    /// The distinct rows among the coordinates and their sums with int64 offsets [K, D].
    coords::BatchedCoords expand(std::span<std::int64_t const> offsets, std::uint64_t chunk_rows) {
        check_sums(offsets);
        std::uint32_t const columns = coords_.columns;
        std::uint64_t const shifts = offsets.size() / (columns - 1);
        std::uint64_t const count = coords_.rows * shifts;
        std::uint64_t const chunk = std::max<std::uint64_t>(
            1, std::min({chunk_rows, count, static_cast<std::uint64_t>(kSumRows)}));
        std::vector<std::int64_t> rows(shifts * columns, 0);
        for (std::uint64_t k = 0; k < shifts; ++k) {
            std::copy_n(offsets.data() + k * (columns - 1), columns - 1,
                        rows.data() + k * columns + 1);
        }
        auto const by = upload(*queue_, rows);
        DistinctRows<Queue> distinct = make_distinct(coords_.rows + std::min(count, chunk));
        distinct.add(coords_.tensor.data(), coords_.rows);
        Array<Queue, unsigned char> const sums(*queue_, chunk * row_bytes());
        for (std::uint64_t begin = 0; begin < count; begin += chunk) {
            std::uint64_t const here = std::min(chunk, count - begin);
            RowsView const shift{by.data(), columns, true};
            with_int([&](auto zero) {
                using Int = decltype(zero);
                queue_->launch(here, SumRows<Int>{view_of(coords_), shift, coords_.rows, begin,
                                                  reinterpret_cast<Int*>(sums.data()), nullptr,
                                                  nullptr, here});
            });
            distinct.add(sums.data(), here);
        }
        return by_batch(distinct);
    }

    /// The distinct rows after every axis is divided by its stride and rounded down.
    coords::BatchedCoords divide(std::span<std::int64_t const> stride) {
        std::vector<std::int64_t> divisors{1};
        divisors.insert(divisors.end(), stride.begin(), stride.end());
        auto const by = upload(*queue_, divisors);
        std::uint64_t const numbers = coords_.rows * coords_.columns;
        Array<Queue, unsigned char> const quotients(*queue_, coords_.rows * row_bytes());
        with_int([&](auto zero) {
            using Int = decltype(zero);
            queue_->launch(numbers, DivideRows<Int>{static_cast<Int const*>(coords_.tensor.data()),
                                                    reinterpret_cast<Int*>(quotients.data()),
                                                    by.data(), coords_.columns, numbers});
        });
        DistinctRows<Queue> distinct = make_distinct(coords_.rows);
        distinct.add(quotients.data(), coords_.rows);
        return by_batch(distinct);
    }

private:
    struct Report {
        std::uint64_t batches = 0;
        std::uint64_t wrong = kNoElement;
    };

    std::uint64_t row_bytes() const { return coords_.columns * byte_size(coords_.tensor.dtype()); }
    DistinctRows<Queue> make_distinct(std::uint64_t expected) const {
        return {*queue_, {coords_.tensor.dtype(), {coords_.columns}}, expected};
    }
    template <class Body>
    void with_int(Body const& body) const {
        if (coords_.wide()) {
            body(std::int64_t{});
        } else {
            body(std::int32_t{});
        }
    }

    /// Throws ValueError if a coordinate plus an offset does not fit the dtype. Waits.
    void check_sums(std::span<std::int64_t const> offsets) const {
        using Widest = std::numeric_limits<std::int64_t>;
        using Narrow = std::numeric_limits<std::int32_t>;
        std::int64_t const least = coords_.wide() ? Widest::min() : Narrow::min();
        std::int64_t const most = coords_.wide() ? Widest::max() : Narrow::max();
        std::size_t const axes = coords_.columns - 1;
        std::vector<std::int64_t> limits{Widest::min(), Widest::max()};
        bool fits = true;
        for (std::size_t axis = 0; axis < axes && fits; ++axis) {
            std::int64_t low = 0;
            std::int64_t high = 0;
            for (std::size_t i = axis; i < offsets.size(); i += axes) {
                low = std::min(low, offsets[i]);
                high = std::max(high, offsets[i]);
            }
            fits = low >= least && high <= most;
            limits.push_back(fits ? least - low : Widest::min());
            limits.push_back(fits ? most - high : Widest::max());
        }
        // As on the CPU: axes before one with a wrong offset count, later ones do not.
        for (std::size_t c = limits.size() / 2; c < coords_.columns; ++c) {
            limits.push_back(Widest::min());
            limits.push_back(Widest::max());
        }
        check_limits(limits);
        if (!fits) {
            backend::fail_offsets(coords_.tensor.dtype());
        }
    }
    void check_limits(std::vector<std::int64_t> const& limits) const {
        auto const on_device = upload(*queue_, limits);
        FirstFound<Queue> const first(*queue_);
        queue_->launch(coords_.rows, FindOutside{view_of(coords_), on_device.data(), true,
                                                 first.data(), coords_.rows});
        if (std::uint64_t const at = first.read(); at != kNoElement) {
            std::uint64_t const number = at % coords_.rows * coords_.columns + at / coords_.rows;
            backend::fail_expansion(read_number(*queue_, coords_, number), coords_.tensor.dtype());
        }
    }

    /// Lists the rows by batch: batches 0 to batches_ - 1, or those that occur.
    coords::BatchedCoords by_batch(DistinctRows<Queue> const& distinct) const {
        std::uint64_t const rows = distinct.count();
        RowsView const view{distinct.rows().data(), coords_.columns, coords_.wide()};
        std::vector<std::int64_t> const occurring =
            batches_ ? std::vector<std::int64_t>{} : batches_that_occur(view, rows);
        auto const sorted = upload(*queue_, occurring);
        std::uint64_t const count = batches_.value_or(occurring.size());
        Array<Queue, std::uint32_t> const keys(*queue_, rows);
        Array<Queue, std::uint32_t> const order(*queue_, rows);
        queue_->launch(rows, BatchKeys{view, batches_ ? nullptr : sorted.data(), occurring.size(),
                                       keys.data(), rows});
        queue_->launch(rows, SequenceRows{order.data(), static_cast<std::uint32_t>(rows)});
        coords::BatchedCoords out{
            Tensor::empty({static_cast<std::int64_t>(rows), coords_.columns},
                          coords_.tensor.dtype(), device_),
            Tensor::empty({static_cast<std::int64_t>(count) + 1}, Dtype::Int64, device_)};
        auto* const offsets = static_cast<std::uint64_t*>(out.offsets.data());
        queue_->fill(offsets, 0, out.offsets.bytes());
        queue_->launch(rows, CountEntries{keys.data(), offsets, rows});
        queue_->scan(offsets, count + 1, static_cast<std::uint64_t*>(nullptr));
        Array<Queue, unsigned char> const scratch(*queue_, queue_->sort_bytes(rows));
        queue_->sort_pairs(keys.data(), order.data(), rows, static_cast<int>(std::bit_width(count)),
                           scratch.data(), scratch.bytes());
        distinct.rows().gather({order.data(), rows}, out.coords.data());
        return out;
    }

    /// Ascending. Waits.
    std::vector<std::int64_t> batches_that_occur(RowsView const& view, std::uint64_t rows) const {
        Array<Queue, std::int64_t> const column(*queue_, rows);
        queue_->launch(rows, FirstColumn{view, column.data(), rows});
        DistinctRows<Queue> distinct(*queue_, {Dtype::Int64, {}}, rows);
        distinct.add(column.data(), rows);
        std::vector<std::int64_t> batches(distinct.count());
        queue_->read_back(batches.data(), distinct.rows().data(), batches.size() * 8);
        std::sort(batches.begin(), batches.end());
        return batches;
    }

    Queue* queue_;
    Device device_;
    CoordRows const& coords_;
    std::optional<std::uint64_t> batches_;  // nullopt: batches are any integers
};

}  // namespace tensorhash::device
