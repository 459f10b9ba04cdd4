// Lays the points of a tree out leaf by leaf, axis by axis.
#include "coords/neighbours/point_tree.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "coords/neighbours/tree_builder.hpp"
#include "runtime/parallel.hpp"

namespace tensorhash::coords {
namespace {

std::span<std::uint64_t const> keys_of(SearchCloud const& cloud) {
    return {reinterpret_cast<std::uint64_t const*>(cloud.batches()), cloud.rows()};
}

/// All rows as one group; no group if there are no rows.
RowGroups all_rows(std::size_t rows) {
    RowGroups all;
    all.rows.resize(rows);
    std::iota(all.rows.begin(), all.rows.end(), std::uint32_t{0});
    if (rows > 0) all.offsets.push_back(rows);
    return all;
}

void fill_records(Points const& points, std::vector<std::uint32_t> const& rows, double* records) {
    runtime::for_ranges(rows.size(), runtime::kGrain, [&](std::size_t begin, std::size_t end) {
        double* record = records + begin * (points.axes + 1);
        for (std::size_t i = begin; i < end; ++i) {
            record = std::copy_n(points.row(rows[i]), points.axes, record);
            *record++ = rows[i];
        }
    });
}

/// Each axis of the records on its own, and their rows.
void take_apart(double const* records, std::size_t count, std::size_t axes, double* points,
                std::size_t stride, std::uint32_t* rows) {
    runtime::for_ranges(count, runtime::kGrain, [&](std::size_t begin, std::size_t end) {
        double const* record = records + begin * (axes + 1);
        for (std::size_t i = begin; i < end; ++i, record += axes + 1) {
            for (std::size_t axis = 0; axis < axes; ++axis)
                points[axis * stride + i] = record[axis];
            rows[i] = static_cast<std::uint32_t>(record[axes]);
        }
    });
    for (std::size_t axis = 0; axis < axes; ++axis) {
        std::fill_n(points + axis * stride + count, stride - count, 0.0);
    }
}

}  // namespace

PointTree::PointTree(SearchCloud const& cloud) : source_(cloud.points) {
    if (cloud.batch) batches_ = std::make_unique<KeyGroups>(keys_of(cloud));
    RowGroups const batches = batches_ ? batches_->groups() : all_rows(cloud.rows());
    std::vector<RecordRange> ranges;
    for (std::size_t g = 0; g < batches.count(); ++g) {
        sizes_.push_back(batches.of(g).size());
        ranges.push_back({static_cast<std::uint32_t>(batches.offsets[g]),
                          static_cast<std::uint32_t>(sizes_.back())});
    }
    auto const rows = static_cast<std::int64_t>(cloud.rows());
    auto const width = static_cast<std::int64_t>(axes()) + 1;
    auto const stride = rows + static_cast<std::int64_t>(cpu::kTreeLanes);
    Tensor records = Tensor::empty({rows, width}, Dtype::Float64);
    Tensor scratch = Tensor::empty({rows, width}, Dtype::Float64);
    auto* const data = static_cast<double*>(records.data());
    fill_records(source_, batches.rows, data);
    TreeNodes built = build_trees(
        {data, static_cast<double*>(scratch.data()), static_cast<std::size_t>(width)}, ranges);
    nodes_ = std::move(built.nodes);
    boxes_ = std::move(built.boxes);
    roots_ = std::move(built.roots);
    points_ = Tensor::empty({width - 1, stride}, Dtype::Float64);
    rows_ = Tensor::empty({rows}, Dtype::UInt32);
    take_apart(data, cloud.rows(), axes(), static_cast<double*>(points_.data()),
               static_cast<std::size_t>(stride), static_cast<std::uint32_t*>(rows_.data()));
}

cpu::TreeView PointTree::view() const noexcept {
    return {nodes_.data(),
            boxes_.data(),
            static_cast<double const*>(points_.data()),
            static_cast<std::uint32_t const*>(rows_.data()),
            source_.rows + cpu::kTreeLanes,
            axes()};
}

std::vector<std::uint32_t> PointTree::batches_of(SearchCloud const& queries) const {
    if (!batches_) {
        return std::vector<std::uint32_t>(queries.rows(), roots_.empty() ? KeyGroups::kNoGroup : 0);
    }
    std::vector<std::uint32_t> batches(queries.rows());
    std::vector<unsigned char> mask(queries.rows());
    batches_->find(keys_of(queries), batches.data(), mask.data());
    return batches;
}

}  // namespace tensorhash::coords
