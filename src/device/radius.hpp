// A radius search on a device: the launches, and two waits: for the checks of the points, which
// give the scale, and for the number of neighbours.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "backend/coords_backend.hpp"
#include "backend/points.hpp"
#include "device/clouds.hpp"
#include "device/coord_index.hpp"
#include "device/core.hpp"
#include "device/keys.hpp"
#include "device/neighbours.hpp"
#include "device/transfers.hpp"
#include "device/values.hpp"
#include "runtime/seed.hpp"

namespace tensorhash::device {

template <class Queue>
class RadiusSearch {
public:
    RadiusSearch(Queue& queue, Device device, backend::RadiusRequest const& request)
        : queue_(&queue), device_(device), request_(request), reports_(queue, 2),
          points_(queue, request.points.points, request.points.batch, reports_.at(0)),
          queries_(queue, request.queries.points, request.queries.batch, reports_.at(1)) {}

    coords::Neighbors find() {
        double const largest = check();
        double const scale = backend::search_scale(largest);
        double const radius = backend::scaled_radius(request_.radius, scale);
        double const width = cell_width(radius, largest * scale);
        to_cells(scale, width);
        std::uint32_t const rows = to_rows(points_.rows());
        auto const states = Array<Queue, FlatState>::zeros(*queue_, 2);
        ScratchIndex<Queue> const index(*queue_, cells_.data(), kCellColumns, rows, states.data(),
                                        step::secret_of(runtime::new_seed()));
        list_by_cell(index.view());
        return search({index.view(), starts_.data(), order_.data(), points_.points(),
                       queries_.points(), query_cells_.data(), points_.axes(), radius},
                      scale);
    }

private:
    /// Throws what the CPU throws. Returns the largest magnitude of all coordinates. Waits.
    double check() const {
        auto const now = reports_.read();
        check_cloud(points_, now[0], "points", "batch");
        check_cloud(queries_, now[1], "queries", "query_batch");
        return std::bit_cast<double>(std::max(now[0].largest, now[1].largest));
    }
    void check_cloud(ReadCloud<Queue> const& cloud, PointReport const& report,
                     std::string_view argument, std::string_view batch_argument) const {
        cloud.check_points(report, argument);
        if (report.far != 0) {
            backend::fail_far(argument, report.far);
        }
        cloud.check_batch(report, batch_argument);
    }

    /// Wide enough that points within the radius are at most one cell apart, although the distance
    /// from the origin is rounded, by less than 2^-12 of a cell.
    static double cell_width(double radius, double largest) {
        double const width = std::max(radius * (1 + 0x1p-10), largest * 0x1p-40);
        return width > 0 ? width : 1;
    }

    void to_cells(double scale, double width) {
        for (ReadCloud<Queue> const* const cloud : {&points_, &queries_}) {
            std::uint64_t const count = cloud->rows() * cloud->axes();
            queue_->launch(count, ScaleNumbers{cloud->points(), scale, count});
        }
        Array<Queue, std::uint32_t> batches;
        Array<Queue, std::uint32_t> query_batches;
        if (points_.batch() != nullptr) {
            number_batches(batches, query_batches);
        }
        cells_ = make_cells(points_, batches, width);
        query_cells_ = make_cells(queries_, query_batches, width);
    }
    Array<Queue, std::int32_t> make_cells(ReadCloud<Queue> const& cloud,
                                          Array<Queue, std::uint32_t> const& batches,
                                          double width) const {
        // Any point will do. One in the middle of the rows is seldom an outlier.
        double const* const origin = points_.rows() == 0
                                         ? queries_.points()
                                         : points_.points() + points_.rows() / 2 * points_.axes();
        Array<Queue, std::int32_t> cells(*queue_, cloud.rows() * kCellColumns);
        queue_->launch(cells.size(), ToGridCells{cloud.points(), origin, batches.data(),
                                                 cells.data(), cloud.axes(), width, cloud.rows()});
        return cells;
    }
    /// Numbers the batches of the points, and finds those of the queries.
    void number_batches(Array<Queue, std::uint32_t>& of_points,
                        Array<Queue, std::uint32_t>& of_queries) const {
        std::uint32_t const rows = to_rows(points_.rows());
        std::uint32_t const queries = to_rows(queries_.rows());
        of_points = {*queue_, rows};
        of_queries = {*queue_, queries};
        Array<Queue, unsigned char> const mask(*queue_, std::max(rows, queries));
        Core<Queue> table(*queue_, format_of({Dtype::Int64, {}}), std::max(1u, rows),
                          runtime::new_seed());
        auto const keys = [](std::int64_t const* batch) {
            return reinterpret_cast<unsigned char const*>(batch);
        };
        table.insert(keys(points_.batch()), rows, {of_points.data(), mask.data()});
        table.find(keys(queries_.batch()), queries, {of_queries.data(), mask.data()});
    }

    void list_by_cell(RowIndexView const& index) {
        std::uint64_t const rows = points_.rows();
        Array<Queue, std::uint32_t> const first(*queue_, rows);
        starts_ = Array<Queue, std::uint64_t>::zeros(*queue_, rows + 1);
        order_ = {*queue_, rows};
        RowsView const own{cells_.data(), kCellColumns, false};
        queue_->launch(rows, SearchRows{index, own, first.data(), rows});
        queue_->launch(rows, CountEntries{first.data(), starts_.data(), rows});
        queue_->scan(starts_.data(), rows + 1, static_cast<std::uint64_t*>(nullptr));
        queue_->launch(rows, SequenceRows{order_.data(), static_cast<std::uint32_t>(rows)});
        sort_rows(*queue_, first.data(), order_.data(), rows,
                  static_cast<int>(std::bit_width(rows)));
    }

    /// Counts, waits, writes.
    coords::Neighbors search(RadiusGrid const& grid, double scale) const {
        std::uint64_t const queries = queries_.rows();
        std::uint64_t const most = request_.max_neighbors
                                       ? static_cast<std::uint64_t>(*request_.max_neighbors)
                                       : std::numeric_limits<std::uint64_t>::max();
        coords::Neighbors out;
        out.offsets =
            Tensor::empty({static_cast<std::int64_t>(queries) + 1}, Dtype::Int64, device_);
        auto* const offsets = static_cast<std::uint64_t*>(out.offsets.data());
        queue_->fill(offsets, 0, out.offsets.bytes());
        queue_->launch(queries, CountNeighbours{grid, most, offsets, queries});
        queue_->scan(offsets, queries + 1, static_cast<std::uint64_t*>(nullptr));
        auto const total = static_cast<std::int64_t>(read_one(*queue_, offsets + queries));
        out.indices = Tensor::empty({total}, Dtype::Int64, device_);
        out.distances = Tensor::empty({total}, Dtype::Float64, device_);
        queue_->launch(queries,
                       WriteNeighbours{grid, static_cast<std::int64_t const*>(out.offsets.data()),
                                       static_cast<std::int64_t*>(out.indices.data()),
                                       static_cast<double*>(out.distances.data()), scale, queries});
        return out;
    }

    Queue* queue_;
    Device device_;
    backend::RadiusRequest const& request_;
    PointReports<Queue> reports_;
    ReadCloud<Queue> points_;
    ReadCloud<Queue> queries_;
    Array<Queue, std::int32_t> cells_{};
    Array<Queue, std::int32_t> query_cells_{};
    Array<Queue, std::uint64_t> starts_{};
    Array<Queue, std::uint32_t> order_{};
};

}  // namespace tensorhash::device
