// A grid of cells for the radius search. Each cell has a 64-bit key, and a vector-key table maps it
// to the first point with that key. The keys are hashes with a random seed, because the table's own
// hash is public. Cells may share a key: the search measures every point anyway.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "coords/neighbours/search_space.hpp"
#include "coords/rows/row_groups.hpp"
#include "index/vector_index.hpp"
#include "tensorhash/step/hash.hpp"

namespace tensorhash::coords {

/// The number of a cell along one axis, from floor(x / edge). Above 2^53, where float64 has gaps,
/// it counts float64 numbers: it never overflows, ascends with x, and has no gaps.
inline std::int64_t cell_number(double cell) noexcept {
    constexpr double kWhole = 9007199254740992.0;  // 2^53
    double const size = std::abs(cell);
    if (size <= kWhole) return static_cast<std::int64_t>(cell);
    std::int64_t const beyond =
        std::bit_cast<std::int64_t>(size) - std::bit_cast<std::int64_t>(kWhole);
    std::int64_t const number = beyond + static_cast<std::int64_t>(kWhole);
    return cell < 0 ? -number : number;
}

/// Calls visit(cell) once for each cell in the window; -1 is no cell. Two keys of one window are
/// equal with probability 2^-64; their points must not count twice.
template <typename Visit>
void visit_once(std::span<std::int32_t const> window, Visit const& visit) {
    std::uint64_t seen = 0;  // one bit per cell % 64: a clear bit proves that the cell is new
    for (std::size_t i = 0; i < window.size(); ++i) {
        if (window[i] < 0) continue;
        std::uint64_t const bit = std::uint64_t{1} << (static_cast<std::uint32_t>(window[i]) % 64);
        auto const before = window.first(i);
        if ((seen & bit) != 0 &&
            std::find(before.begin(), before.end(), window[i]) != before.end()) {
            continue;
        }
        seen |= bit;
        visit(static_cast<std::size_t>(window[i]));
    }
}

/// Keys in the form that the vector-key table takes: two columns each.
class CellKeys {
public:
    static constexpr std::uint32_t kColumns = 2;

    std::size_t size() const noexcept { return words_.size() / kColumns; }
    std::int32_t const* rows() const noexcept { return words_.data(); }
    void resize(std::size_t keys) { words_.resize(keys * kColumns); }
    void set(std::size_t i, std::uint64_t key) noexcept {
        words_[i * kColumns] = static_cast<std::int32_t>(key);
        words_[i * kColumns + 1] = static_cast<std::int32_t>(key >> 32);
    }
    void add(std::uint64_t key) {
        resize(size() + 1);
        set(size() - 1, key);
    }
    void clear() noexcept { words_.clear(); }

private:
    std::vector<std::int32_t> words_;
};

/// The reach of a grid for a radius. The margin is wider than the rounding error of a distance.
inline double reach_of(double radius) noexcept { return radius * (1 + 0x1p-40); }

class CellGrid {
public:
    static constexpr std::size_t kMaxAxes = 3;  // more would cost 3^axes lookups per query

    /// A window of `reach` to each side is a few cells wide.
    CellGrid(SearchCloud const& cloud, double reach);

    /// Appends the keys of all cells that overlap the window of a query.
    void add_window(double const* query, std::int64_t batch, CellKeys& keys) const;
    /// The cell of each key, or -1. Many threads may call this at once.
    void find(CellKeys const& keys, std::int32_t* cells) const;

    std::size_t size() const noexcept { return keys_.size(); }
    /// The points of a cell lie together: from begin(cell) to begin(cell + 1).
    std::size_t begin(std::size_t cell) const noexcept { return groups_.offsets[cell]; }
    std::uint32_t row(std::size_t i) const noexcept { return groups_.rows[i]; }
    double const* point(std::size_t i) const noexcept { return points_.data() + i * axes_; }
    std::int64_t batch(std::size_t i) const noexcept { return batches_.empty() ? 0 : batches_[i]; }

private:
    std::int64_t number(double x) const noexcept { return cell_number(std::floor(x / edge_)); }
    /// The axes along which the points fill the most cells, at most kMaxAxes.
    std::vector<std::size_t> finest_axes(Points const& points) const;
    CellKeys keys_of(SearchCloud const& cloud) const;
    /// Numbers the cells in the order of their first points.
    void group_points();

    step::HashSecret secret_;
    std::size_t axes_;
    double reach_;
    double edge_;
    std::vector<std::size_t> gridded_;  // the axes that have cells
    CellKeys keys_;                     // of the points: the rows of the table
    index::VectorIndex table_;
    std::vector<std::int32_t> cell_of_;  // [points]
    RowGroups groups_;
    std::vector<double> points_;
    std::vector<std::int64_t> batches_;
};

}  // namespace tensorhash::coords
