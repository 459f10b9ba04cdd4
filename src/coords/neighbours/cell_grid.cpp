// Makes the keys of cells and groups their points.
#include "coords/neighbours/cell_grid.hpp"

#include <algorithm>
#include <numeric>

#include "index/flat_index.hpp"
#include "runtime/parallel.hpp"
#include "runtime/seed.hpp"

namespace tensorhash::coords {
namespace {

// A cell's key is a seeded hash of four words, so an attacker cannot choose cells that collide.
std::uint64_t fold(std::uint64_t hash, std::int64_t word, step::HashSecret const& secret) {
    return step::fold_in(hash, static_cast<std::uint64_t>(word), secret);
}

std::uint64_t finish(std::uint64_t hash, std::int64_t word, step::HashSecret const& secret) {
    return step::end_with(hash, static_cast<std::uint64_t>(word), secret);
}

}  // namespace

// Coordinates are within 2^501, so an edge of 2^-500 keeps quotients finite. A larger minimum would
// only put more points into one cell.
CellGrid::CellGrid(SearchCloud const& cloud, double reach)
    : secret_(step::secret_of(runtime::new_seed())), axes_(cloud.points.axes), reach_(reach),
      edge_(std::max(reach, 0x1p-500)), gridded_(finest_axes(cloud.points)), keys_(keys_of(cloud)),
      table_(index::FlatIndex::capacity_for(keys_.size()), CellKeys::kColumns),
      cell_of_(keys_.size()), points_(cloud.rows() * axes_) {
    group_points();
    bool const batched = cloud.batch.has_value();
    if (batched) batches_.resize(cloud.rows());
    runtime::for_ranges(cloud.rows(), runtime::kGrain, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            std::copy_n(cloud.points.row(row(i)), axes_, points_.data() + i * axes_);
            if (batched) batches_[i] = cloud.batches()[row(i)];
        }
    });
}

// Counts the cells of a sample instead of comparing extents: a few outliers must not select an axis
// along which all other points agree.
std::vector<std::size_t> CellGrid::finest_axes(Points const& points) const {
    std::vector<std::size_t> axes(points.axes);
    std::iota(axes.begin(), axes.end(), std::size_t{0});
    if (points.axes <= kMaxAxes) return axes;
    constexpr std::size_t kSample = 1024;
    std::size_t const step = points.rows / kSample + 1;
    std::vector<std::size_t> cells(points.axes);
    for (std::size_t const axis : axes) {
        std::vector<std::int64_t> numbers;
        for (std::size_t row = 0; row < points.rows; row += step) {
            numbers.push_back(number(points.row(row)[axis]));
        }
        std::sort(numbers.begin(), numbers.end());
        cells[axis] =
            static_cast<std::size_t>(std::unique(numbers.begin(), numbers.end()) - numbers.begin());
    }
    std::sort(axes.begin(), axes.end(), [&](std::size_t a, std::size_t b) {
        return cells[a] != cells[b] ? cells[a] > cells[b] : a < b;
    });
    axes.resize(kMaxAxes);
    return axes;
}

CellKeys CellGrid::keys_of(SearchCloud const& cloud) const {
    CellKeys keys;
    keys.resize(cloud.rows());
    std::int64_t const* const batch = cloud.batches();
    runtime::for_ranges(keys.size(), runtime::kGrain, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            std::array<std::int64_t, kMaxAxes> cell{};
            for (std::size_t axis = 0; axis < gridded_.size(); ++axis) {
                cell[axis] = number(cloud.points.row(i)[gridded_[axis]]);
            }
            std::uint64_t const base = fold(secret_.start, batch ? batch[i] : 0, secret_);
            std::uint64_t const row = fold(fold(base, cell[0], secret_), cell[1], secret_);
            keys.set(i, finish(row, cell[2], secret_));
        }
    });
    return keys;
}

void CellGrid::group_points() {
    table_.insert(keys_.rows(), 0, keys_.size());  // at most half full: it always fits
    table_.find(keys_.rows(), keys_.rows(), keys_.size(), cell_of_.data());
    std::int32_t cells = 0;
    for (std::size_t i = 0; i < cell_of_.size(); ++i) {
        auto const first = static_cast<std::size_t>(cell_of_[i]);
        cell_of_[i] = first == i ? cells++ : cell_of_[first];
    }
    groups_ = group_rows(std::span<std::int32_t const>(cell_of_), static_cast<std::size_t>(cells));
}

void CellGrid::find(CellKeys const& keys, std::int32_t* cells) const {
    table_.find(keys_.rows(), keys.rows(), keys.size(), cells);
    for (std::size_t i = 0; i < keys.size(); ++i) {
        cells[i] = cells[i] < 0 ? -1 : cell_of_[static_cast<std::size_t>(cells[i])];
    }
}

// Rounding is monotone: a point within reach lies between the rounded ends of the window, and so
// does its cell.
void CellGrid::add_window(double const* query, std::int64_t batch, CellKeys& keys) const {
    std::array<std::int64_t, kMaxAxes> low{};
    std::array<std::int64_t, kMaxAxes> high{};
    for (std::size_t axis = 0; axis < gridded_.size(); ++axis) {
        low[axis] = number(query[gridded_[axis]] - reach_);
        high[axis] = number(query[gridded_[axis]] + reach_);
    }
    std::uint64_t const base = fold(secret_.start, batch, secret_);
    for (std::int64_t x = low[0]; x <= high[0]; ++x) {
        std::uint64_t const at_x = fold(base, x, secret_);
        for (std::int64_t y = low[1]; y <= high[1]; ++y) {
            std::uint64_t const at_y = fold(at_x, y, secret_);
            for (std::int64_t z = low[2]; z <= high[2]; ++z) {
                keys.add(finish(at_y, z, secret_));
            }
        }
    }
}

}  // namespace tensorhash::coords
