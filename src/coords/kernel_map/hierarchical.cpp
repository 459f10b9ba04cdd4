// The hierarchical path: which coarse cells around a query hold anything is asked first, and only offsets that fall into
// such a cell are looked up.
#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <string>

#include "coords/kernel_map/pieces.hpp"
#include "runtime/parallel.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::coords {
namespace {

constexpr std::size_t kAxes = 3;
constexpr std::uint32_t kWidth = kAxes + 1;  // columns, the batch among them

/// Bytes that a task may take to remember which cells are occupied; a single query takes a byte a cell.
constexpr std::size_t kOccupiedBytes = std::size_t{2} << 20;

using Numbers = std::array<std::int64_t, kAxes>;

/// The coarse grid: cell = coordinate >> bits, and the box of cells that a kernel can reach from its center's.
struct Footprint {
    int bits = 0;
    Numbers half{};   // of the kernel
    Numbers reach{};  // cells to each side
    Numbers box{};    // 2 * reach + 1
    std::size_t cells = 1;

    Footprint(Question const& question, std::int64_t coarse_stride)
        : bits(std::countr_zero(static_cast<std::uint64_t>(coarse_stride))) {
        for (std::size_t axis = 0; axis < kAxes; ++axis) {
            half[axis] = question.size[axis] / 2;
            reach[axis] = (half[axis] + coarse_stride - 1) / coarse_stride;
            box[axis] = 2 * reach[axis] + 1;
            cells *= static_cast<std::size_t>(box[axis]);
        }
    }

    /// How many queries a task asks for at once.
    std::size_t rows() const noexcept {
        return std::clamp<std::size_t>(kOccupiedBytes / cells, 1, kPieceRows);
    }
};

bool fits_int32(std::int64_t value) { return value == static_cast<std::int32_t>(value); }

/// The queries of one piece, and what is known of the cells around them.
class Search {
public:
    Search(Question const& question, CoordIndex const& fine, CoordIndex const& coarse,
           Footprint const& footprint, std::size_t begin, std::size_t end)
        : question_(question), fine_(fine), coarse_(coarse), footprint_(footprint),
          queries_(question.out.data() + begin * kWidth), count_(end - begin), centers_(count_),
          occupied_(footprint.cells * count_, 0), inside_(kAxes * count_), cell_(count_),
          chosen_(count_ + 1), asked_(count_ * kWidth) {
        std::int64_t const last = (std::int64_t{1} << footprint.bits) - 1;
        for (std::size_t i = 0; i < count_; ++i) {
            for (std::size_t axis = 0; axis < kAxes; ++axis) {
                centers_[i][axis] = queries_[i * kWidth + axis + 1] * question.stride[axis];
                inside_[axis * count_ + i] = static_cast<std::int32_t>(centers_[i][axis] & last);
            }
        }
    }

    void run(Piece& piece) {
        for (std::size_t cell = 0; cell < footprint_.cells; ++cell) {
            probe_cell(cell, piece);
        }
        for (std::size_t k = 0; k < question_.groups; ++k) {
            probe_offset(k, piece);
            piece.end_group(k);
        }
    }

private:
    /// Pass 1: one cell of the box, for every query whose kernel reaches into it.
    void probe_cell(std::size_t cell, Piece& piece) {
        Numbers step{};
        auto rest = static_cast<std::int64_t>(cell);
        for (std::size_t axis = kAxes; axis-- > 0;) {
            step[axis] = rest % footprint_.box[axis] - footprint_.reach[axis];
            rest /= footprint_.box[axis];
        }
        std::size_t asked = 0;
        for (std::size_t i = 0; i < count_; ++i) {
            std::int32_t* const row = asked_.data() + asked * kWidth;
            if (reaches(i, step, row)) {
                row[0] = queries_[i * kWidth];
                chosen_[asked++] = static_cast<std::uint16_t>(i);
            }
        }
        coarse_.find_shifted(asked_.data(), 0, asked, Shift{}, found_);
        for (std::size_t j = 0; j < asked; ++j) {
            occupied_[cell * count_ + chosen_[j]] = found_[j] >= 0;
        }
        piece.coarse_probes += static_cast<std::int64_t>(asked);
    }

    /// Whether the kernel of query i meets its cell plus `step`, which is written to row[1..]. No coordinate lies in a
    /// cell that is no int32.
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

    /// Pass 2: one offset, for every query that has something in the offset's cell.
    void probe_offset(std::size_t k, Piece& piece) {
        mark_cells(question_.offset(k));
        std::size_t asked = 0;
        for (std::size_t i = 0; i < count_;
             ++i) {  // no branch: which are occupied nobody can guess
            chosen_[asked] = static_cast<std::uint16_t>(i);
            asked += occupied_[cell_[i] * count_ + i];
        }
        for (std::size_t j = 0; j < asked; ++j) {
            std::copy_n(queries_ + std::size_t{chosen_[j]} * kWidth, kWidth,
                        asked_.data() + j * kWidth);
        }
        fine_.find_shifted(asked_.data(), 0, asked, question_.shift(k), found_);
        for (std::size_t j = 0; j < asked; ++j) {
            if (found_[j] >= 0) piece.add(found_[j], chosen_[j]);
        }
        piece.fine_probes += static_cast<std::int64_t>(asked);
    }

    /// The cell of the box that each query's offset falls into.
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

    Question const& question_;
    CoordIndex const& fine_;
    CoordIndex const& coarse_;
    Footprint const& footprint_;
    std::int32_t const* queries_;
    std::size_t count_;
    std::vector<Numbers> centers_;         // the queries times the stride
    std::vector<unsigned char> occupied_;  // [cell of the box, query]
    std::vector<std::int32_t> inside_;     // [axis, query]: where in its cell the center lies
    std::vector<std::uint32_t> cell_;      // the cell of the offset at hand, per query
    std::vector<std::uint16_t> chosen_;    // the queries that are asked for, and room for one more
    std::vector<std::int32_t> asked_;      // their rows
    std::int32_t found_[kPieceRows];
};

/// The cells of all rows, repeats included: the index takes the first of each.
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

void check_takes(Question const& question) {
    std::string const end = "; use the strategy flat or merge";
    if (question.axes != kAxes) {
        throw ValueError("kernel_size: the hierarchical path takes 3 axes, got " +
                         std::to_string(question.axes) + end);
    }
    for (std::size_t axis = 0; axis < kAxes; ++axis) {
        std::string const at = "axis " + std::to_string(axis) + ": the hierarchical path takes ";
        if (question.size[axis] % 2 == 0) {
            throw ValueError("kernel_size: " + at + "odd sizes, got " +
                             std::to_string(question.size[axis]) + end);
        }
        if (question.dilation[axis] != 1) {
            throw ValueError("kernel_dilation: " + at + "1, got " +
                             std::to_string(question.dilation[axis]) + end);
        }
        if (question.offset(0)[axis] != -(question.size[axis] / 2)) {
            throw ValueError("kernel_center_offset: " + at + "the middle, " +
                             std::to_string(question.size[axis] / 2) + ", got " +
                             std::to_string(-std::int64_t{question.offset(0)[axis]}) + end);
        }
    }
}

}  // namespace

bool hierarchical_takes(Question const& question) noexcept {
    return question.axes == kAxes && question.odd && question.centered &&
           question.dilation == Shape(kAxes, 1);
}

Answer hierarchical_kernel_map(Question const& question, CoordIndex const& index,
                               std::int64_t coarse_stride) {
    check_takes(question);
    if (coarse_stride < 1 || coarse_stride > (std::int64_t{1} << 30) ||
        !std::has_single_bit(static_cast<std::uint64_t>(coarse_stride))) {
        throw ValueError("stride: expected a power of two from 1 to 2^30, got " +
                         std::to_string(coarse_stride));
    }
    Footprint const footprint(question, coarse_stride);
    CoordIndex const coarse = coarse_index(index.rows(), footprint.bits);
    std::size_t const rows = question.out.rows;
    std::size_t const piece_rows = footprint.rows();
    std::vector<Piece> pieces((rows + piece_rows - 1) / piece_rows);
    runtime::run_tasks(pieces.size(), [&](std::size_t number) {
        std::size_t const begin = number * piece_rows;
        pieces[number].first_row = begin;
        Search search(question, index, coarse, footprint, begin,
                      std::min(rows, begin + piece_rows));
        search.run(pieces[number]);
    });
    return join_pieces(pieces, question.groups);
}

}  // namespace tensorhash::coords
