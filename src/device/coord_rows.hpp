// Rows of integer coordinates as bodies read them, and the bodies that check and convert them.
#pragma once

#include <cstdint>

#include "backend/points.hpp"
#include "device/counters.hpp"
#include "device/grid.hpp"
#include "tensorhash/step/int32.hpp"

namespace tensorhash::device {

/// A batch index and six axes.
inline constexpr std::uint32_t kRowColumns = 7;

using backend::kNoElement;
using step::fits_int32;

/// int32 or int64 [rows, columns] on the device.
struct RowsView {
    void const* data;
    std::uint32_t columns;
    bool is_int64;

    TH_STEP std::int64_t at(std::uint64_t row, std::uint32_t column) const {
        std::uint64_t const i = row * columns + column;
        return is_int64 ? static_cast<std::int64_t const*>(data)[i]
                        : static_cast<std::int32_t const*>(data)[i];
    }
};

/// One row in registers; missing columns are 0. Loops over all columns, so that a compiler unrolls
/// them.
struct CoordRow {
    std::int32_t numbers[kRowColumns];
};

/// Calls number(column) -> int64 for each column. False if one does not fit int32.
template <class Number>
TH_STEP bool make_row(std::uint32_t columns, Number const& number, CoordRow& row) {
    bool fits = true;
    for (std::uint32_t c = 0; c < kRowColumns; ++c) {
        std::int64_t const value = c < columns ? number(c) : 0;
        row.numbers[c] = static_cast<std::int32_t>(value);
        fits = fits && fits_int32(value);
    }
    return fits;
}

TH_STEP CoordRow load_row(std::int32_t const* rows, std::uint64_t row, std::uint32_t columns) {
    CoordRow loaded;
    for (std::uint32_t c = 0; c < kRowColumns; ++c) {
        loaded.numbers[c] = c < columns ? rows[row * columns + c] : 0;
    }
    return loaded;
}

/// Casts to int32. Says where the first number is that does not fit, and which rows have one.
struct NarrowRows {
    using Shared = NoShared;
    RowsView from;
    std::int32_t* to;
    std::uint64_t* first;    // kNoElement before the launch; null: not wanted
    unsigned char* outside;  // [rows]; null: not wanted
    std::uint64_t rows;

    TH_STEP void operator()(NoShared&) const {
        for_rows(rows, [&](std::uint64_t row) {
            std::uint64_t mine = kNoElement;
            for (std::uint32_t c = from.columns; c-- > 0;) {
                std::int64_t const value = from.at(row, c);
                to[row * from.columns + c] = static_cast<std::int32_t>(value);
                mine = fits_int32(value) ? mine : row * from.columns + c;
            }
            if (mine != kNoElement && first != nullptr) {
                fetch_min(first, mine);
            }
            if (outside != nullptr) {
                outside[row] = mine != kNoElement ? 1 : 0;
            }
        });
    }
};

/// Raises a flag if two arrays differ.
struct CompareRows {
    using Shared = NoShared;
    std::int32_t const* a;
    std::int32_t const* b;
    std::uint64_t numbers;
    std::uint32_t* differ;

    TH_STEP void operator()(NoShared&) const {
        for_rows(numbers, [&](std::uint64_t i) {
            if (a[i] != b[i]) {
                raise_flag(differ);
            }
        });
    }
};

/// Finds the first number outside the limits of its column.
struct FindOutside {
    using Shared = NoShared;
    RowsView view;
    std::int64_t const* limits;  // [columns, 2]: low and high, both included
    bool by_column;  // "first" means: in the first column, there in the first row; else by row
    std::uint64_t* first;  // kNoElement before the launch; then column * rows + row, or
                           // row * columns + column
    std::uint64_t rows;

    TH_STEP void operator()(NoShared&) const {
        std::uint64_t mine = kNoElement;
        for_rows(rows, [&](std::uint64_t row) {
            for (std::uint32_t c = 0; c < view.columns; ++c) {
                std::int64_t const value = view.at(row, c);
                bool const inside =
                    value >= limits[std::size_t{2} * c] && value <= limits[std::size_t{2} * c + 1];
                std::uint64_t const at = by_column ? c * rows + row : row * view.columns + c;
                mine = !inside && at < mine ? at : mine;
            }
        });
        if (mine != kNoElement) {
            fetch_min(first, mine);
        }
    }
};

}  // namespace tensorhash::device
