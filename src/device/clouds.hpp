// Points and batches on a device, read into float64 and int64, and the checks of their numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "backend/points.hpp"
#include "device/array.hpp"
#include "device/points.hpp"
#include "device/queue.hpp"
#include "device/transfers.hpp"
#include "tensorhash/tensor.hpp"

namespace tensorhash::device {

/// A stable sort of rows by `keys`, with scratch memory of its own.
template <class Queue>
void sort_rows(Queue& queue, std::uint32_t* keys, std::uint32_t* rows, std::uint64_t count,
               int bits) {
    Array<Queue, unsigned char> const scratch(queue, queue.sort_bytes(count));
    queue.sort_pairs(keys, rows, count, bits, scratch.data(), scratch.bytes());
}

/// Reports of several arrays, which one wait reads.
template <class Queue>
class PointReports {
public:
    PointReports(Queue& queue, std::size_t count)
        : queue_(&queue), words_(upload(queue, std::vector<PointReport>(count))) {}

    PointReport* at(std::size_t i) const { return words_.data() + i; }
    /// Waits.
    std::vector<PointReport> read() const {
        std::vector<PointReport> reports(words_.size());
        queue_->read_back(reports.data(), words_.data(), words_.bytes());
        return reports;
    }

private:
    Queue* queue_;
    Array<Queue, PointReport> words_;
};

/// Points as float64, and the batch of each as int64.
template <class Queue>
class ReadCloud {
public:
    /// The arrays are contiguous and on the device.
    ReadCloud(Queue& queue, Tensor const& points, std::optional<Tensor> const& batch,
              PointReport* report)
        : queue_(&queue), rows_(static_cast<std::uint64_t>(points.shape()[0])),
          axes_(static_cast<std::uint64_t>(points.shape()[1])), points_(queue, rows_ * axes_) {
        queue.launch(rows_ * axes_, ReadPoints{points.data(), points.dtype(), points_.data(),
                                               backend::kLargestCoordinate, report, rows_ * axes_});
        if (batch) {
            batch_ = {queue, rows_};
            queue.launch(rows_, ReadBatch{batch->data(), batch->dtype(), batch_.data(),
                                          &report->wrong_batch, rows_});
        }
    }

    std::uint64_t rows() const noexcept { return rows_; }
    std::uint64_t axes() const noexcept { return axes_; }
    double* points() const noexcept { return points_.data(); }
    /// Null without batches.
    std::int64_t const* batch() const noexcept { return batch_.data(); }

    /// Throws what the CPU throws for points.
    void check_points(PointReport const& report, std::string_view argument) const {
        backend::BadNumbers const bad{report.nan, report.infinite, report.inexact, report.first};
        if (!bad.clean()) {
            backend::fail_numbers(bad, axes_, argument);
        }
    }
    void check_batch(PointReport const& report, std::string_view argument) const {
        if (report.wrong_batch != kNoElement) {
            std::int64_t const batch = read_one(*queue_, batch_.data() + report.wrong_batch);
            backend::fail_batch_number(argument, static_cast<std::uint64_t>(batch),
                                       report.wrong_batch);
        }
    }

private:
    Queue* queue_;
    std::uint64_t rows_;
    std::uint64_t axes_;
    Array<Queue, double> points_;
    Array<Queue, std::int64_t> batch_{};
};

}  // namespace tensorhash::device
