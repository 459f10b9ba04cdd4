// The mean point of each voxel in one pass. A stable partition by voxel brings the points of a
// voxel into one part, in row order. One thread sorts a part by voxel, in cache, and adds.
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "coords/voxels/voxels.hpp"
#include "cpu/part_order.hpp"
#include "cpu/partition.hpp"
#include "cpu/word_numbers.hpp"
#include "runtime/block_vector.hpp"
#include "runtime/memory.hpp"
#include "runtime/scan.hpp"
#include "runtime/seed.hpp"

namespace tensorhash::coords {
namespace {

using cpu::kParts;

constexpr std::size_t kAxes = cpu::kMaxCarried;  // at most
// One word holds the voxels of all axes, from 2^20 below the voxel of the first point to 2^20 - 1
// above it. Clouds may lie far from the origin: coordinates of maps do.
constexpr unsigned kBits = 21;
constexpr double kReach = 1 << (kBits - 1);
// If the first voxel is nearer to 0 than this, int64 holds all voxels within reach.
constexpr double kFarthest = 0x1p62;
// Below this many rows, the parts are too small.
constexpr std::size_t kFewest = std::size_t{1} << 15;

/// A point, or the sum of points. Lanes without an axis are 0.
constexpr std::size_t kLanes = 4;
using Lanes = std::array<double, kLanes>;

/// The word and the coordinates of each point. Coordinates go as the bits of a double.
template <class Value>
class Source final : public cpu::PartitionSource {
public:
    Source(backend::VoxelizeRequest const& request, Value const* points, std::size_t axes)
        : request_(request), points_(points), axes_(axes) {
        for (std::size_t axis = 0; axis < axes; ++axis) {
            double const first = voxel_of(static_cast<double>(points[axis]), request.origin[axis],
                                          request.voxel_size[axis]);
            first_[axis] = std::abs(first) < kFarthest ? first : 0;
        }
    }

    void read(std::size_t begin, std::size_t count, std::uint64_t* words,
              std::uint64_t* const* room, std::uint64_t const** values) const override {
        std::array<std::uint64_t, cpu::kReadRows> voxels{};
        bool inside = true;
        for (std::size_t axis = 0; axis < axes_; ++axis) {
            inside &= add_axis(begin, count, axis, voxels.data(), room[axis]);
            values[axis] = room[axis];
        }
        // Relaxed: the partition joins its tasks before anyone asks.
        if (!inside) is_outside_.store(true, std::memory_order_relaxed);
        auto const* const keys = reinterpret_cast<unsigned char const*>(voxels.data());
        loops_->mix({keys, sizeof(std::uint64_t), 0}, secret_, 0, count, words);
    }

    /// Some point has a voxel that does not fit the word, or none at all.
    bool is_outside() const noexcept { return is_outside_.load(std::memory_order_relaxed); }

private:
    /// As voxel_coords() finds it.
    static double voxel_of(double coordinate, double origin, double size) noexcept {
        return std::floor((coordinate - origin) / size);
    }

    bool add_axis(std::size_t begin, std::size_t count, std::size_t axis, std::uint64_t* voxels,
                  std::uint64_t* coordinates) const {
        double const origin = request_.origin[axis];
        double const size = request_.voxel_size[axis];
        double const first = first_[axis];
        Value const* point = points_ + begin * axes_ + axis;
        bool inside = true;
        for (std::size_t i = 0; i < count; ++i, point += axes_) {
            auto const coordinate = static_cast<double>(*point);
            double const voxel = voxel_of(coordinate, origin, size) - first;  // exact if it fits
            bool const fits = voxel >= -kReach && voxel < kReach;
            inside &= fits;
            auto const number = static_cast<std::int32_t>((fits ? voxel : 0) + kReach);
            voxels[i] = voxels[i] << kBits | static_cast<std::uint32_t>(number);
            coordinates[i] = std::bit_cast<std::uint64_t>(coordinate);
        }
        return inside;
    }

    backend::VoxelizeRequest const& request_;
    Value const* points_;
    std::size_t axes_;
    std::array<double, kAxes> first_{};  // the voxel of the first point
    step::HashSecret secret_ = step::secret_of(runtime::new_seed());
    cpu::GroupLoops const* loops_ = &cpu::group_loops();
    mutable std::atomic<bool> is_outside_{false};
};

/// As VoxelReduce::Mean, in all lanes at once: the first point plus the mean deviation from it.
Lanes mean_of(Lanes const* points, std::size_t count) noexcept {
    Lanes const first = points[0];
    Lanes low = first;
    Lanes high = first;
    Lanes deviation{};
    for (std::size_t i = 1; i < count; ++i) {
        for (std::size_t lane = 0; lane < kLanes; ++lane) {
            double const value = points[i][lane];
            low[lane] = value < low[lane] ? value : low[lane];
            high[lane] = high[lane] < value ? value : high[lane];
            deviation[lane] += value - first[lane];
        }
    }
    Lanes mean;
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
        mean[lane] = first[lane] + deviation[lane] / static_cast<double>(count);
        if (std::isfinite(mean[lane])) {
            mean[lane] = std::clamp(mean[lane], low[lane], high[lane]);
            continue;
        }
        double sum = 0;  // a difference has overflowed
        for (std::size_t i = 0; i < count; ++i) sum += points[i][lane];
        mean[lane] = sum / static_cast<double>(count);
    }
    return mean;
}

/// The voxels of all parts. A part has room for one per row: one large block stays warm for the
/// next call, many small ones would not.
class AllVoxels {
public:
    AllVoxels(cpu::Partition const& partition, std::size_t rows, std::size_t axes)
        : axes_(axes), first_rows_(rows * sizeof(std::uint32_t)),
          means_(rows * axes * sizeof(double)) {
        for (std::size_t part = 0; part < kParts; ++part) begins_[part] = partition.rows(part);
        runtime::scan(begins_);
    }

    /// Ascending.
    std::uint32_t* first_rows(std::size_t part) noexcept {
        return reinterpret_cast<std::uint32_t*>(first_rows_.data()) + begins_[part];
    }
    double* mean(std::size_t part, std::size_t voxel) noexcept {
        return reinterpret_cast<double*>(means_.data()) + (begins_[part] + voxel) * axes_;
    }
    void set_count(std::size_t part, std::size_t count) noexcept { counts_[part] = count; }
    cpu::FirstRows all_first_rows() noexcept {
        cpu::FirstRows out;
        for (std::size_t part = 0; part < kParts; ++part) {
            out[part] = {first_rows(part), counts_[part]};
        }
        return out;
    }

private:
    std::size_t axes_;
    runtime::Block first_rows_;
    runtime::Block means_;
    std::array<std::size_t, kParts + 1> begins_{};
    std::array<std::size_t, kParts> counts_{};
};

/// Finds the voxels of parts. One per thread: its memory is reused from part to part.
class PartReducer {
public:
    PartReducer(cpu::Partition const& partition, std::size_t axes)
        : partition_(partition), axes_(axes) {}

    void reduce(std::size_t part, AllVoxels& out) {
        number(part);
        sort_points(part);
        std::copy(table_.rows().begin(), table_.rows().end(), out.first_rows(part));
        out.set_count(part, table_.count());
        std::uint32_t begin = 0;
        for (std::size_t voxel = 0; voxel < table_.count(); ++voxel) {
            Lanes const mean = mean_of(points_.data() + begin, ends_[voxel] - begin);
            std::copy_n(mean.begin(), axes_, out.mean(part, voxel));
            begin = ends_[voxel];
        }
    }

private:
    void number(std::size_t part) {
        std::size_t const rows = partition_.rows(part);
        table_.reset(std::max(rows / 8, table_.count() + table_.count() / 8));
        numbers_.resize(rows);
        std::uint32_t* to = numbers_.data();
        partition_.for_blocks(part, [&](cpu::PartBlock const& block) {
            table_.number(block.words, block.rows, 0, block.count, to);
            to += block.count;
        });
    }

    /// A stable counting sort by voxel.
    void sort_points(std::size_t part) {
        ends_.assign(table_.count() + 1, 0);
        for (std::uint32_t const number : numbers_) ++ends_[number + 1];
        for (std::size_t i = 1; i < ends_.size(); ++i) ends_[i] += ends_[i - 1];
        points_.resize(numbers_.size());
        std::uint32_t const* number = numbers_.data();
        partition_.for_blocks(part, [&](cpu::PartBlock const& block) {
            for (std::size_t i = 0; i < block.count; ++i) {
                Lanes point{};
                for (std::size_t axis = 0; axis < axes_; ++axis) {
                    point[axis] = std::bit_cast<double>(block.values[axis][i]);
                }
                points_[ends_[*number++]++] = point;
            }
        });
    }

    cpu::Partition const& partition_;
    std::size_t axes_;
    cpu::WordNumbers table_;
    std::vector<std::uint32_t> numbers_;  // the voxel of each row of the part
    std::vector<std::uint32_t> ends_;     // of each voxel in points_, after sort_points()
    runtime::BlockVector<Lanes> points_;
};

template <class Value>
std::optional<Tensor> means_of(backend::VoxelizeRequest const& request, Tensor const& points) {
    auto const rows = static_cast<std::size_t>(points.shape()[0]);
    auto const axes = static_cast<std::size_t>(points.shape()[1]);
    Source<Value> const source(request, static_cast<Value const*>(points.data()), axes);
    cpu::Partition const partition(source, rows, axes);
    if (source.is_outside()) return {};
    AllVoxels voxels(partition, rows, axes);
    partition.for_parts([&] {
        return [&, reducer = PartReducer(partition, axes)](std::size_t part) mutable {
            reducer.reduce(part, voxels);
        };
    });
    cpu::PartOrder const order(voxels.all_first_rows(), rows);
    Tensor out = Tensor::empty({static_cast<std::int64_t>(order.groups()), points.shape()[1]},
                               points.dtype());
    auto* const means = static_cast<Value*>(out.data());
    order.for_groups([&](std::size_t part, std::size_t voxel, std::size_t rank) {
        double const* const mean = voxels.mean(part, voxel);
        for (std::size_t axis = 0; axis < axes; ++axis) {
            means[rank * axes + axis] = static_cast<Value>(mean[axis]);
        }
    });
    return out;
}

}  // namespace

std::optional<Tensor> mean_points(backend::VoxelizeRequest const& request) {
    Shape const& shape = request.points.shape();
    if (shape[0] < static_cast<std::int64_t>(kFewest) ||
        shape[0] > std::numeric_limits<std::int32_t>::max() ||
        shape[1] > static_cast<std::int64_t>(kAxes) || request.batch) {
        return {};
    }
    switch (request.points.dtype()) {
        case Dtype::Float32:
            return means_of<float>(request, request.points.contiguous());
        case Dtype::Float64:
            return means_of<double>(request, request.points.contiguous());
        default:
            return {};
    }
}

}  // namespace tensorhash::coords
