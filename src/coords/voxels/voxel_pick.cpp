// Picks one row of each voxel. Rows are grouped first; one thread has all rows of a voxel.
#include <algorithm>
#include <cmath>
#include <vector>

#include "coords/neighbours/points.hpp"
#include "coords/neighbours/search_space.hpp"
#include "coords/rows/row_groups.hpp"
#include "coords/voxels/voxels.hpp"
#include "runtime/parallel.hpp"
#include "tensor/numbers.hpp"

namespace tensorhash::coords {
namespace {

constexpr std::size_t kGrain = 1024;  // voxels per task, at least

using Rows = std::span<std::uint32_t const>;

/// int64 [V]: pick(rows) of each voxel.
template <class Pick>
Tensor pick_rows(RowGroups const& groups, Pick&& pick) {
    Tensor out = Tensor::empty({static_cast<std::int64_t>(groups.count())}, Dtype::Int64);
    auto* const picked = static_cast<std::int64_t*>(out.data());
    runtime::for_ranges(groups.count(), kGrain, [&](std::size_t begin, std::size_t end) {
        for (std::size_t voxel = begin; voxel < end; ++voxel)
            picked[voxel] = pick(groups.of(voxel));
    });
    return out;
}

/// The row nearest to `target`; of equally near ones the first.
std::int64_t nearest(Points const& points, Rows rows, double const* target) noexcept {
    double best = squared_distance(points.row(rows[0]), target, points.axes);
    std::uint32_t found = rows[0];
    for (std::uint32_t const row : rows.subspan(1)) {
        double const squared = squared_distance(points.row(row), target, points.axes);
        if (!(squared < best)) continue;
        best = squared;
        found = row;
    }
    return found;
}

/// A label and the row that has it.
struct Vote {
    std::int64_t label;
    std::uint32_t row;

    friend bool operator<(Vote const& a, Vote const& b) noexcept {
        return a.label != b.label ? a.label < b.label : a.row < b.row;
    }
};

/// The first row with the most frequent label; of equally frequent labels, the one that came first.
std::int64_t winner(std::vector<Vote>& votes) {
    std::sort(votes.begin(), votes.end());
    std::size_t most = 0;
    std::uint32_t found = 0;
    for (auto run = votes.begin(); run != votes.end();) {
        auto const end = std::find_if(run, votes.end(),
                                      [&](Vote const& vote) { return vote.label != run->label; });
        auto const count = static_cast<std::size_t>(end - run);
        if (count > most || (count == most && run->row < found)) {
            most = count;
            found = run->row;
        }
        run = end;
    }
    return found;
}

/// Labels as int64; those of uint64 keep their bits, so that equal labels stay equal.
std::vector<std::int64_t> to_labels(Tensor const& labels) {
    std::vector<std::int64_t> out(static_cast<std::size_t>(labels.size()));
    Tensor const numbers = labels.contiguous();
    visit_number(numbers.dtype(), "features", [&](auto type) {
        using Type = decltype(type);
        if constexpr (std::is_integral_v<typename Type::Computed>) {
            auto const* const data = static_cast<typename Type::Stored const*>(numbers.data());
            for (std::size_t i = 0; i < out.size(); ++i) {
                out[i] = static_cast<std::int64_t>(Type::load(data[i]));
            }
        }
    });
    return out;
}

}  // namespace

Tensor rows_near_centers(Tensor const& points, std::vector<double> const& voxel_size,
                         std::vector<double> const& origin, Tensor const& inverse,
                         std::int64_t voxels) {
    Points const cloud = to_points(points, "points");
    RowGroups const groups = group_by_voxel(inverse, voxels);
    return pick_rows(groups, [&](Rows rows) {
        std::vector<double> center(cloud.axes);
        for (std::size_t axis = 0; axis < cloud.axes; ++axis) {
            double const at = cloud.row(rows[0])[axis] - origin[axis];
            double const voxel = std::floor(at / voxel_size[axis]);
            center[axis] = (voxel + 0.5) * voxel_size[axis] + origin[axis];
        }
        return nearest(cloud, rows, center.data());
    });
}

Tensor rows_near_centroids(Tensor const& points, Tensor const& inverse, std::int64_t voxels) {
    Points const cloud = to_points(points, "points");
    RowGroups const groups = group_by_voxel(inverse, voxels);
    Tensor const means = reduce_rows(cloud.tensor, inverse, voxels, VoxelReduce::Mean);
    auto const* const centroids = static_cast<double const*>(means.data());
    Tensor const voxel_of = inverse.contiguous();
    auto const* const numbers = static_cast<std::int64_t const*>(voxel_of.data());
    return pick_rows(groups, [&](Rows rows) {
        auto const voxel = static_cast<std::size_t>(numbers[rows[0]]);
        return nearest(cloud, rows, centroids + voxel * cloud.axes);
    });
}

Tensor rows_of_modes(Tensor const& labels, std::optional<std::int64_t> ignore_label,
                     Tensor const& inverse, std::int64_t voxels) {
    std::vector<std::int64_t> const numbers = to_labels(labels);
    RowGroups const groups = group_by_voxel(inverse, voxels);
    return pick_rows(groups, [&](Rows of_voxel) -> std::int64_t {
        std::vector<Vote> votes;
        votes.reserve(of_voxel.size());
        for (std::uint32_t const row : of_voxel) {
            if (numbers[row] != ignore_label) votes.push_back({numbers[row], row});
        }
        return votes.empty() ? of_voxel[0] : winner(votes);
    });
}

}  // namespace tensorhash::coords
