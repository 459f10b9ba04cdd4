// Bodies that move rows of values: gather, scatter, zero, strided copies. One thread per piece.
#pragma once

#include "device/counters.hpp"
#include "device/pieces.hpp"
#include "tensorhash/step/bucket.hpp"

namespace tensorhash::device {

/// Row i of `out`, or row places[i], becomes row indices[i] of `from`, or row i. Index -1 gives a
/// row of `missing`, or zeros if that is null.
struct GatherRows {
    using Shared = NoShared;
    unsigned char const* from;
    std::uint32_t const* indices;  // null: row i
    std::uint32_t const* places;   // null: row i
    unsigned char const* missing;
    std::uint64_t missing_step;  // bytes from one missing row to the next; 0: all share one
    unsigned char* out;
    PieceGrid grid;

    TH_STEP void operator()(NoShared&) const {
        grid.for_pieces([&](std::uint64_t row, std::uint64_t offset) {
            std::uint64_t const place = places != nullptr ? places[row] : row;
            unsigned char* const to = out + place * grid.row_bytes + offset;
            std::uint32_t const index =
                indices != nullptr ? indices[row] : static_cast<std::uint32_t>(row);
            if (index != step::kNotFound) {
                copy_piece(to, from + index * grid.row_bytes + offset, grid.piece);
            } else if (missing != nullptr) {
                copy_piece(to, missing + row * missing_step + offset, grid.piece);
            } else {
                zero_piece(to, grid.piece);
            }
        });
    }
};

/// Row indices[i] of `to` becomes row i of `from`, or row order[i], for the rows with a set mask.
/// Their indices are distinct.
struct ScatterRows {
    using Shared = NoShared;
    unsigned char* to;
    std::uint32_t const* indices;
    unsigned char const* mask;
    unsigned char const* from;   // null: zeros
    std::uint64_t from_step;     // bytes from one row of `from` to the next; 0: all share one
    std::uint32_t const* order;  // null: row i
    PieceGrid grid;

    TH_STEP void operator()(NoShared&) const {
        grid.for_pieces([&](std::uint64_t row, std::uint64_t offset) {
            if (mask[row] == 0) {
                return;
            }
            unsigned char* const at = to + indices[row] * grid.row_bytes + offset;
            if (from == nullptr) {
                zero_piece(at, grid.piece);
            } else {
                std::uint64_t const source = order != nullptr ? order[row] : row;
                copy_piece(at, from + source * from_step + offset, grid.piece);
            }
        });
    }
};

inline constexpr std::uint32_t kMaxAxes = 16;

/// Copies elements of a strided array to contiguous memory, or the other way round. Strides are in
/// bytes and may be negative, or zero when they are read.
struct CopyStrided {
    using Shared = NoShared;
    unsigned char const* from;
    unsigned char* to;
    std::uint64_t elements;
    std::uint32_t element_bytes;
    std::uint32_t piece;  // divides the element size, both addresses and all strides
    std::uint32_t axes;
    std::uint64_t shape[kMaxAxes];
    std::int64_t strides[kMaxAxes];
    bool into_strides = false;

    TH_STEP void operator()(NoShared&) const {
        for_rows(elements, [&](std::uint64_t element) {
            std::uint64_t left = element;
            std::int64_t offset = 0;
            for (std::uint32_t axis = axes; axis-- > 0; left /= shape[axis]) {
                offset += static_cast<std::int64_t>(left % shape[axis]) * strides[axis];
            }
            auto const dense = static_cast<std::int64_t>(element * element_bytes);
            copy_row(to + (into_strides ? offset : dense), from + (into_strides ? dense : offset),
                     element_bytes, piece);
        });
    }
};

/// Writes 0, 1, 2 and so on.
struct SequenceRows {
    using Shared = NoShared;
    std::uint32_t* out;
    std::uint32_t rows;

    TH_STEP void operator()(NoShared&) const {
        for_rows(rows, [&](std::uint64_t row) { out[row] = static_cast<std::uint32_t>(row); });
    }
};

/// 32-bit rows as int64.
struct WidenRows {
    using Shared = NoShared;
    std::uint32_t const* from;
    std::int64_t* to;
    std::uint64_t rows;

    TH_STEP void operator()(NoShared&) const {
        for_rows(rows, [&](std::uint64_t row) { to[row] = from[row]; });
    }
};

/// Adds one to the count of each row's entry.
struct CountEntries {
    using Shared = NoShared;
    std::uint32_t const* indices;
    std::uint64_t* counts;
    std::uint64_t rows;

    TH_STEP void operator()(NoShared&) const {
        for_rows(rows,
                 [&](std::uint64_t row) { fetch_add(&counts[indices[row]], std::uint64_t{1}); });
    }
};

/// Swaps 0 and 1.
struct FlipMask {
    using Shared = NoShared;
    unsigned char* mask;
    std::uint32_t rows;

    TH_STEP void operator()(NoShared&) const {
        for_rows(rows, [&](std::uint64_t row) { mask[row] ^= 1; });
    }
};

// The last row of each entry, in three launches that cost nothing per entry of the table: forget,
// raise, choose.

/// Forgets the owners of the entries that this batch has. Relaxed stores, because rows repeat.
struct ForgetOwners {
    using Shared = NoShared;
    std::uint32_t const* indices;
    std::uint32_t* owners;  // [capacity]
    std::uint32_t rows;

    TH_STEP void operator()(NoShared&) const {
        for_rows(rows, [&](std::uint64_t row) {
            if (indices[row] != step::kNotFound) {
                step::Shared::store(&owners[indices[row]], 0u);
            }
        });
    }
};

/// Each entry gets 1 + its last row.
struct RaiseOwners {
    using Shared = NoShared;
    std::uint32_t const* indices;
    std::uint32_t* owners;
    std::uint32_t rows;

    TH_STEP void operator()(NoShared&) const {
        for_rows(rows, [&](std::uint64_t row) {
            if (indices[row] != step::kNotFound) {
                fetch_max(&owners[indices[row]], static_cast<std::uint32_t>(row) + 1);
            }
        });
    }
};

/// Sets the mask of the last row of each entry.
struct ChooseOwners {
    using Shared = NoShared;
    std::uint32_t const* indices;
    std::uint32_t const* owners;
    unsigned char* mask;
    std::uint32_t rows;

    TH_STEP void operator()(NoShared&) const {
        for_rows(rows, [&](std::uint64_t row) {
            bool const last = indices[row] != step::kNotFound && owners[indices[row]] == row + 1;
            mask[row] = last ? 1 : 0;
        });
    }
};

}  // namespace tensorhash::device
