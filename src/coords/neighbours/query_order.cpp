// Sorts queries along a Morton curve.
#include "coords/neighbours/query_order.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include "runtime/parallel.hpp"
#include "runtime/scan.hpp"

namespace tensorhash::coords {
namespace {

constexpr std::size_t kCurveAxes = 3;
constexpr unsigned kCurveBits = 10;  // per axis

/// The first axes of a cloud on a grid of 2^10 cells each.
class CurveGrid {
public:
    explicit CurveGrid(Points const& points) : axes_(std::min(points.axes, kCurveAxes)) {
        for (std::size_t axis = 0; axis < axes_; ++axis) {
            double high = points.row(0)[axis];
            low_[axis] = high;
            for (std::size_t row = 1; row < points.rows; ++row) {
                low_[axis] = std::min(low_[axis], points.row(row)[axis]);
                high = std::max(high, points.row(row)[axis]);
            }
            double const width = high - low_[axis];
            scale_[axis] = width > 0 ? ((1 << kCurveBits) - 1) / width : 0;
        }
    }

    /// The place along a Morton curve: the bits of all axes in turn.
    std::uint32_t place(double const* point) const noexcept {
        std::uint32_t code = 0;
        for (std::size_t axis = 0; axis < axes_; ++axis) {
            double const cell = (point[axis] - low_[axis]) * scale_[axis];
            code |= spread(static_cast<std::uint32_t>(cell)) << axis;
        }
        return code;
    }

private:
    /// Moves bit i to place 3 * i.
    static std::uint32_t spread(std::uint32_t bits) noexcept {
        bits = (bits | bits << 16) & 0x030000ff;
        bits = (bits | bits << 8) & 0x0300f00f;
        bits = (bits | bits << 4) & 0x030c30c3;
        return (bits | bits << 2) & 0x09249249;
    }

    std::size_t axes_;
    std::array<double, kCurveAxes> low_{};
    std::array<double, kCurveAxes> scale_{};
};

}  // namespace

std::vector<std::uint32_t> near_each_other(Points const& queries) {
    std::vector<std::uint32_t> order(queries.rows);
    std::iota(order.begin(), order.end(), std::uint32_t{0});
    if (queries.rows < 2 * runtime::kGrain) return order;
    CurveGrid const grid(queries);
    std::vector<std::uint32_t> code(queries.rows);
    runtime::for_ranges(queries.rows, runtime::kGrain, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) code[i] = grid.place(queries.row(i));
    });
    // A stable counting sort by the lower half of the code, then by the upper half.
    constexpr unsigned kHalf = kCurveAxes * kCurveBits / 2;
    std::vector<std::uint32_t> sorted(queries.rows);
    for (unsigned const shift : {0u, kHalf}) {
        std::vector<std::uint32_t> places(std::size_t{1} << kHalf);
        auto const digit = [&](std::uint32_t row) {
            return code[row] >> shift & ((1u << kHalf) - 1);
        };
        for (std::uint32_t const row : order) ++places[digit(row)];
        runtime::scan(places);
        for (std::uint32_t const row : order) sorted[places[digit(row)]++] = row;
        order.swap(sorted);
    }
    return order;
}

}  // namespace tensorhash::coords
