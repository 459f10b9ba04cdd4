// The hierarchical path: finds the coarse cells around a query that have rows, then looks up only
// the offsets that fall into such a cell.
#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "coords/kernel_map/partial_maps.hpp"
#include "runtime/parallel.hpp"

namespace tensorhash::coords {
namespace {

constexpr std::size_t kAxes = 3;
constexpr std::uint32_t kWidth = kAxes + 1;  // columns, the batch among them

/// The most bytes that a task uses to mark occupied cells. A query takes one byte per cell.
constexpr std::size_t kOccupiedBytes = std::size_t{2} << 20;

using Numbers = std::array<std::int64_t, kAxes>;

/// The coarse grid: cell = coordinate >> bits, and the box of cells that a kernel reaches from the
/// cell of its center.
struct Footprint {
    int bits = 0;
    Numbers half{};   // of the kernel
    Numbers reach{};  // cells to each side
    Numbers box{};    // 2 * reach + 1
    std::size_t cells = 1;

    explicit Footprint(KernelMapRequest const& request)
        : bits(std::countr_zero(static_cast<std::uint64_t>(request.coarse_stride))) {
        std::int64_t const coarse_stride = request.coarse_stride;
        for (std::size_t axis = 0; axis < kAxes; ++axis) {
            half[axis] = request.size[axis] / 2;
            reach[axis] = (half[axis] + coarse_stride - 1) / coarse_stride;
            box[axis] = 2 * reach[axis] + 1;
            cells *= static_cast<std::size_t>(box[axis]);
        }
    }

    /// Queries of one task.
    std::size_t rows() const noexcept {
        return std::clamp<std::size_t>(kOccupiedBytes / cells, 1, kPartRows);
    }
};

/// The queries of one part, and which cells around them have rows.
class CoarseSearch {
public:
    CoarseSearch(KernelMapRequest const& request, CoordIndex const& fine, CoordIndex const& coarse,
                 Footprint const& footprint, std::size_t begin, std::size_t end)
        : request_(request), fine_(fine), coarse_(coarse), footprint_(footprint),
          queries_(request.out.data() + begin * kWidth), count_(end - begin), centers_(count_),
          occupied_(footprint.cells * count_, 0), inside_(kAxes * count_), cell_(count_),
          chosen_(count_ + 1), keys_(count_ * kWidth) {
        std::int64_t const last = (std::int64_t{1} << footprint.bits) - 1;
        for (std::size_t i = 0; i < count_; ++i) {
            for (std::size_t axis = 0; axis < kAxes; ++axis) {
                centers_[i][axis] = queries_[i * kWidth + axis + 1] * request.stride[axis];
                inside_[axis * count_ + i] = static_cast<std::int32_t>(centers_[i][axis] & last);
            }
        }
    }

    void run(PartialMap& part) {
        for (std::size_t cell = 0; cell < footprint_.cells; ++cell) {
            probe_cell(cell, part);
        }
        for (std::size_t k = 0; k < request_.groups; ++k) {
            probe_offset(k, part);
            part.end_group(k);
        }
    }

private:
    /// Pass 1: one cell of the box, for every query with a kernel that reaches it.
    void probe_cell(std::size_t cell, PartialMap& part) {
        Numbers step{};
        auto rest = static_cast<std::int64_t>(cell);
        for (std::size_t axis = kAxes; axis-- > 0;) {
            step[axis] = rest % footprint_.box[axis] - footprint_.reach[axis];
            rest /= footprint_.box[axis];
        }
        std::size_t count = 0;
        for (std::size_t i = 0; i < count_; ++i) {
            std::int32_t* const row = keys_.data() + count * kWidth;
            if (reaches(i, step, row)) {
                row[0] = queries_[i * kWidth];
                chosen_[count++] = static_cast<std::uint16_t>(i);
            }
        }
        coarse_.find_shifted(keys_.data(), 0, count, Shift{}, found_);
        for (std::size_t j = 0; j < count; ++j) {
            occupied_[cell * count_ + chosen_[j]] = found_[j] >= 0;
        }
        part.coarse_probes += static_cast<std::int64_t>(count);
    }

    /// Whether the kernel of query i meets the cell at `step` from its own. Writes the cell to
    /// row[1..]. A cell outside int32 has no rows.
    bool reaches(std::size_t i, Numbers const& step, std::int32_t* row) const {
        for (std::size_t axis = 0; axis < kAxes; ++axis) {
            std::int64_t const center = centers_[i][axis];
            std::int64_t const cell = (center >> footprint_.bits) + step[axis];
            bool const met = (center - footprint_.half[axis]) >> footprint_.bits <= cell &&
                             cell <= (center + footprint_.half[axis]) >> footprint_.bits;
            if (!met || !fits_int32(cell)) return false;
            row[axis + 1] = static_cast<std::int32_t>(cell);
        }
        return true;
    }

    /// Pass 2: one offset, for every query with rows in the cell of that offset.
    void probe_offset(std::size_t k, PartialMap& part) {
        mark_cells(request_.offset(k));
        std::size_t count = 0;
        for (std::size_t i = 0; i < count_; ++i) {  // no branch: it would be unpredictable
            chosen_[count] = static_cast<std::uint16_t>(i);
            count += occupied_[cell_[i] * count_ + i];
        }
        for (std::size_t j = 0; j < count; ++j) {
            std::copy_n(queries_ + std::size_t{chosen_[j]} * kWidth, kWidth,
                        keys_.data() + j * kWidth);
        }
        fine_.find_shifted(keys_.data(), 0, count, shift_of(request_, k), found_);
        for (std::size_t j = 0; j < count; ++j) {
            if (found_[j] >= 0) part.add(found_[j], chosen_[j]);
        }
        part.fine_probes += static_cast<std::int64_t>(count);
    }

    /// The cell of the box that the offset of each query falls into.
    void mark_cells(std::int32_t const* offset) {
        std::fill(cell_.begin(), cell_.end(), 0);
        for (std::size_t axis = 0; axis < kAxes; ++axis) {
            auto const box = static_cast<std::uint32_t>(footprint_.box[axis]);
            auto const reach = static_cast<std::int32_t>(footprint_.reach[axis]);
            std::int32_t const* const inside = inside_.data() + axis * count_;
            for (std::size_t i = 0; i < count_; ++i) {
                std::int32_t const step = (inside[i] + offset[axis]) >> footprint_.bits;
                cell_[i] = cell_[i] * box + static_cast<std::uint32_t>(step + reach);
            }
        }
    }

    KernelMapRequest const& request_;
    CoordIndex const& fine_;
    CoordIndex const& coarse_;
    Footprint const& footprint_;
    std::int32_t const* queries_;
    std::size_t count_;
    std::vector<Numbers> centers_;         // the queries times the stride
    std::vector<unsigned char> occupied_;  // [cell of the box, query]
    std::vector<std::int32_t> inside_;     // [axis, query]: the center's place in its cell
    std::vector<std::uint32_t> cell_;      // per query, the cell of the current offset
    std::vector<std::uint16_t> chosen_;    // the queries to look up, and room for one more
    std::vector<std::int32_t> keys_;       // their rows
    std::int32_t found_[kPartRows];
};

/// The cells of all rows, repeats included: the index keeps the first of each.
CoordIndex coarse_index(CoordRows const& rows, int bits) {
    Tensor cells = Tensor::empty(rows.tensor.shape(), Dtype::Int32);
    auto const to = cells.as_mutable<std::int32_t>();
    runtime::for_ranges(rows.rows, runtime::kGrain, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin * kWidth; i < end * kWidth; ++i) {
            to[i] = i % kWidth == 0 ? rows.data()[i] : rows.data()[i] >> bits;
        }
    });
    return CoordIndex({cells, rows.rows, rows.columns});
}

}  // namespace

KernelMapPairs hierarchical_kernel_map(KernelMapRequest const& request, CoordIndex const& index) {
    Footprint const footprint(request);
    CoordIndex const coarse = coarse_index(index.rows(), footprint.bits);
    std::size_t const rows = request.out.rows;
    std::size_t const part_rows = footprint.rows();
    PartialMaps parts((rows + part_rows - 1) / part_rows);
    runtime::run_tasks(parts.size(), [&](std::size_t number) {
        std::size_t const begin = number * part_rows;
        parts[number].first_row = begin;
        CoarseSearch search(request, index, coarse, footprint, begin,
                            std::min(rows, begin + part_rows));
        search.run(parts[number]);
    });
    return join_partial_maps(parts, request.groups);
}

}  // namespace tensorhash::coords
