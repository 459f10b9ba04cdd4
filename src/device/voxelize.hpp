// Voxels on a device: the launches and the waits, one for each call.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

#include "backend/coords_backend.hpp"
#include "backend/points.hpp"
#include "device/clouds.hpp"
#include "device/column.hpp"
#include "device/keys.hpp"
#include "device/picks.hpp"
#include "device/transfers.hpp"
#include "tensor/numbers.hpp"

namespace tensorhash::device {

/// The voxel of each point, as `Key`. Waits once.
template <class Key, class Queue>
Tensor quantize_as(Queue& queue, Device device, backend::VoxelizeRequest const& request) {
    PointReports<Queue> const reports(queue, 2);
    ReadCloud<Queue> const cloud(queue, request.points, request.batch, reports.at(0));
    auto const size = upload(queue, request.voxel_size);
    auto const origin = upload(queue, request.origin);
    std::uint64_t const columns = cloud.axes() + (request.batch ? 1 : 0);
    Tensor voxels =
        Tensor::empty({static_cast<std::int64_t>(cloud.rows()), static_cast<std::int64_t>(columns)},
                      dtype_of<Key>, device);
    queue.launch(
        cloud.rows(),
        QuantizePoints<Key>{cloud.points(), size.data(), origin.data(), cloud.batch(), cloud.axes(),
                            static_cast<Key*>(voxels.data()), reports.at(1), cloud.rows()});
    auto const now = reports.read();
    cloud.check_points(now[0], "points");
    cloud.check_batch(now[0], "batch");
    PointReport const& found = now[1];
    if (found.wrong_batch != kNoElement) {
        backend::fail_voxel_batch(read_one(queue, cloud.batch() + found.wrong_batch),
                                  found.wrong_batch, dtype_of<Key>);
    }
    if (found.outside != 0) {
        std::uint64_t const axis = found.first_outside % cloud.axes();
        double const value = read_one(queue, cloud.points() + found.first_outside);
        double const voxel = std::floor((value - request.origin[axis]) / request.voxel_size[axis]);
        backend::fail_voxels({found.outside, found.first_outside}, cloud.axes(), value, voxel,
                             dtype_of<Key>);
    }
    return voxels;
}

template <class Queue>
Tensor quantize(Queue& queue, Device device, backend::VoxelizeRequest const& request) {
    return request.dtype == Dtype::Int32 ? quantize_as<std::int32_t>(queue, device, request)
                                         : quantize_as<std::int64_t>(queue, device, request);
}

/// Rows listed voxel by voxel.
template <class Queue>
class VoxelGroups {
public:
    /// `inverse` is contiguous and on the device.
    VoxelGroups(Queue& queue, Tensor const& inverse, std::int64_t voxels)
        : queue_(&queue), inverse_(static_cast<std::int64_t const*>(inverse.data())),
          voxels_(voxels), rows_(to_rows(static_cast<std::size_t>(inverse.size()))),
          starts_(Array<Queue, std::uint64_t>::zeros(queue, count() + 1)), order_(queue, rows_),
          report_(upload(queue, std::vector<std::uint64_t>{kNoElement, kNoElement, 0})) {
        Array<Queue, std::uint32_t> const keys(queue, rows_);
        queue.launch(rows_, CountVoxelRows{inverse_, voxels, keys.data(), order_.data(),
                                           starts_.data(), report_.data(), rows_});
        queue.scan(starts_.data(), starts_.size(), static_cast<std::uint64_t*>(nullptr));
        sort_rows(queue, keys.data(), order_.data(), rows_, bits());
        queue.launch(count(), FindEmptyVoxel{starts_.data(), report_.data() + 1, count()});
    }

    std::uint64_t count() const noexcept {
        return static_cast<std::uint64_t>(std::max<std::int64_t>(voxels_, 0));
    }
    /// Of a voxel number.
    int bits() const noexcept {
        return static_cast<int>(std::bit_width(std::min<std::uint64_t>(count(), ~0u)));
    }
    std::uint32_t rows() const noexcept { return rows_; }
    VoxelRows view() const noexcept { return {order_.data(), starts_.data()}; }
    std::uint64_t* outside() const noexcept { return report_.data() + 2; }

    /// Throws what the CPU throws for a wrong inverse. Returns the number of sums that do not fit.
    /// Waits.
    std::uint64_t check() const {
        std::uint64_t now[3];
        queue_->read_back(now, report_.data(), sizeof now);
        if (now[0] != kNoElement) {
            backend::fail_voxel_number(read_one(*queue_, inverse_ + now[0]), voxels_);
        }
        if (now[1] != kNoElement) {
            backend::fail_empty_voxel(now[1]);
        }
        return now[2];
    }

private:
    Queue* queue_;
    std::int64_t const* inverse_;
    std::int64_t voxels_;
    std::uint32_t rows_;
    Array<Queue, std::uint64_t> starts_;
    Array<Queue, std::uint32_t> order_;
    Array<Queue, std::uint64_t> report_;  // first wrong row, first empty voxel, sums outside
};

/// Reduces the rows of `values` [N, ...] that share a voxel. Waits once.
template <class Queue>
Tensor reduce_by_voxel(Queue& queue, Device device, Tensor const& values, Tensor const& inverse,
                       std::int64_t voxels, coords::VoxelReduce reduce) {
    VoxelGroups<Queue> const groups(queue, inverse, voxels);
    Shape shape = values.shape();
    shape[0] = static_cast<std::int64_t>(groups.count());
    Dtype const dtype = backend::reduced_dtype(values.dtype(), reduce);
    if (values.size() == 0) {
        groups.check();
        return Tensor::empty(shape, dtype, device);
    }
    Tensor out = Tensor::empty(shape, dtype, device);
    auto const rows = static_cast<std::uint64_t>(values.shape()[0]);
    if (reduce == coords::VoxelReduce::First || reduce == coords::VoxelReduce::Last) {
        Array<Queue, std::uint32_t> const picked(queue, groups.count());
        bool const last = reduce == coords::VoxelReduce::Last;
        queue.launch(groups.count(),
                     PickVoxelRows{groups.view(), last, picked.data(), groups.count()});
        std::uint64_t const row_bytes = values.bytes() / rows;
        PieceGrid const grid{groups.count(), row_bytes,
                             piece_of(row_bytes, values.data(), out.data())};
        queue.launch(grid.size(), GatherRows{static_cast<unsigned char const*>(values.data()),
                                             picked.data(), nullptr, nullptr, 0,
                                             static_cast<unsigned char*>(out.data()), grid});
    } else {
        std::uint64_t const width = static_cast<std::uint64_t>(values.size()) / rows;
        visit_number(values.dtype(), "features", [&](auto type) {
            using Type = decltype(type);
            queue.launch(
                groups.count() * width,
                ReduceVoxels<Type>{static_cast<typename Type::Stored const*>(values.data()),
                                   groups.view(), width, reduce, out.data(), groups.outside(),
                                   groups.count()});
        });
    }
    if (std::uint64_t const outside = groups.check(); outside != 0) {
        backend::fail_voxel_sums(outside, dtype);
    }
    return out;
}

/// int64 [voxels] on the device, from a launch that writes it. Waits once, for the checks.
template <class Queue, class Launch>
Tensor pick_by_voxel(VoxelGroups<Queue> const& groups, Device device, Launch const& launch) {
    Tensor picked =
        Tensor::empty({static_cast<std::int64_t>(groups.count())}, Dtype::Int64, device);
    launch(static_cast<std::int64_t*>(picked.data()));
    groups.check();
    return picked;
}

/// The row nearest to the centre of each voxel. Waits twice: bad points are named first.
template <class Queue>
Tensor nearest_centers(Queue& queue, Device device, backend::VoxelizeRequest const& request,
                       Tensor const& inverse, std::int64_t voxels) {
    PointReports<Queue> const reports(queue, 1);
    ReadCloud<Queue> const cloud(queue, request.points, {}, reports.at(0));
    cloud.check_points(reports.read()[0], "points");
    VoxelGroups<Queue> const groups(queue, inverse, voxels);
    auto const size = upload(queue, request.voxel_size);
    auto const origin = upload(queue, request.origin);
    Array<Queue, double> const centers(queue, groups.count() * cloud.axes());
    queue.launch(centers.size(),
                 VoxelCenters{cloud.points(), groups.view(), size.data(), origin.data(),
                              centers.data(), cloud.axes(), groups.count()});
    return pick_by_voxel(groups, device, [&](std::int64_t* picked) {
        queue.launch(groups.count(), NearestRows{cloud.points(), centers.data(), groups.view(),
                                                 picked, cloud.axes(), groups.count()});
    });
}

/// The row nearest to the mean of each voxel's points. Waits twice.
template <class Queue>
Tensor nearest_centroids(Queue& queue, Device device, Tensor const& points, Tensor const& inverse,
                         std::int64_t voxels) {
    PointReports<Queue> const reports(queue, 1);
    ReadCloud<Queue> const cloud(queue, points, {}, reports.at(0));
    cloud.check_points(reports.read()[0], "points");
    VoxelGroups<Queue> const groups(queue, inverse, voxels);
    Array<Queue, double> const means(queue, groups.count() * cloud.axes());
    queue.launch(means.size(),
                 ReduceVoxels<Plain<double>>{cloud.points(), groups.view(), cloud.axes(),
                                             coords::VoxelReduce::Mean, means.data(),
                                             groups.outside(), groups.count()});
    return pick_by_voxel(groups, device, [&](std::int64_t* picked) {
        queue.launch(groups.count(), NearestRows{cloud.points(), means.data(), groups.view(),
                                                 picked, cloud.axes(), groups.count()});
    });
}

/// The first row with the most frequent label of each voxel. Waits once.
template <class Queue>
Tensor mode_rows(Queue& queue, Device device, Tensor const& labels,
                 std::optional<std::int64_t> ignored, Tensor const& inverse, std::int64_t voxels) {
    VoxelGroups<Queue> const groups(queue, inverse, voxels);
    std::uint32_t const rows = groups.rows();
    Array<Queue, std::int64_t> const numbers(queue, rows);
    Array<Queue, std::uint32_t> const order(queue, rows);
    Array<Queue, std::uint32_t> const keys(queue, rows);
    queue.launch(rows, ReadBatch{labels.data(), labels.dtype(), numbers.data(), nullptr, rows});
    queue.launch(rows, SequenceRows{order.data(), rows});
    auto const sort_by = [&](std::int64_t const* by, std::uint32_t shift, int bits) {
        queue.launch(rows, HalfKeys{by, order.data(), keys.data(), shift, rows});
        sort_rows(queue, keys.data(), order.data(), rows, bits);
    };
    sort_by(numbers.data(), 0, 32);
    sort_by(numbers.data(), 32, 32);
    sort_by(static_cast<std::int64_t const*>(inverse.data()), 0, groups.bits());
    return pick_by_voxel(groups, device, [&](std::int64_t* picked) {
        queue.launch(groups.count(), ModeRows{numbers.data(),
                                              {order.data(), groups.view().starts},
                                              ignored.has_value(),
                                              ignored.value_or(0),
                                              picked,
                                              groups.count()});
    });
}

}  // namespace tensorhash::device
