// Bodies that make rows from rows: sums with offsets, quotients, and the batch of each row.
#pragma once

#include <cstdint>
#include <type_traits>

#include "device/coord_rows.hpp"

namespace tensorhash::device {

/// Sum i is row i % base_rows plus offset i / base_rows. `Int` is int32 or int64. Wraps where a
/// check has already failed.
template <class Int>
struct SumRows {
    using Shared = NoShared;
    RowsView base;
    RowsView offsets;
    std::uint64_t base_rows;
    std::uint64_t begin;         // the first sum of this launch
    Int* out;                    // [sums, columns]
    std::int64_t const* limits;  // [columns, 2]; null: not checked
    std::uint64_t* first;        // the first number outside the limits: sum * columns + column
    std::uint64_t sums;

    TH_STEP void operator()(NoShared&) const {
        std::uint64_t mine = kNoElement;
        for_rows(sums, [&](std::uint64_t i) {
            std::uint64_t const row = (begin + i) % base_rows;
            std::uint64_t const k = (begin + i) / base_rows;
            for (std::uint32_t c = 0; c < base.columns; ++c) {
                auto const sum =
                    static_cast<std::int64_t>(static_cast<std::uint64_t>(base.at(row, c)) +
                                              static_cast<std::uint64_t>(offsets.at(k, c)));
                out[i * base.columns + c] = static_cast<Int>(sum);
                bool const inside = limits == nullptr || (sum >= limits[std::size_t{2} * c] &&
                                                          sum <= limits[std::size_t{2} * c + 1]);
                std::uint64_t const at = (begin + i) * base.columns + c;
                mine = !inside && at < mine ? at : mine;
            }
        });
        if (mine != kNoElement) {
            fetch_min(first, mine);
        }
    }
};

/// Divides every number by its column's divisor, rounded down.
template <class Int>
struct DivideRows {
    using Shared = NoShared;
    Int const* rows;
    Int* out;
    std::int64_t const* divisors;  // [columns], 1 or more
    std::uint32_t columns;
    std::uint64_t numbers;  // rows * columns

    TH_STEP void operator()(NoShared&) const {
        for_rows(numbers, [&](std::uint64_t i) {
            auto const by = static_cast<Int>(divisors[i % columns]);
            Int const value = rows[i];
            Int const quotient = static_cast<Int>(value / by);
            bool const inexact = quotient * by != value;
            out[i] = static_cast<Int>(quotient - (inexact && value < 0 ? 1 : 0));
        });
    }
};

/// The batches of rows, which are in column 0.
struct CheckBatches {
    using Shared = NoShared;
    RowsView view;
    std::int64_t limit;
    std::uint64_t* batches;  // 0 before the launch; then 1 + the largest batch below the limit
    std::uint64_t* first;    // kNoElement before; then the first row with a batch not in [0, limit)
    std::uint64_t rows;

    TH_STEP void operator()(NoShared&) const {
        std::uint64_t most = 0;
        std::uint64_t wrong = kNoElement;
        for_rows(rows, [&](std::uint64_t row) {
            std::int64_t const batch = view.at(row, 0);
            if (batch < 0 || batch >= limit) {
                wrong = row < wrong ? row : wrong;
            } else {
                auto const here = static_cast<std::uint64_t>(batch) + 1;
                most = here > most ? here : most;
            }
        });
        if (most != 0) {
            fetch_max(batches, most);
        }
        if (wrong != kNoElement) {
            fetch_min(first, wrong);
        }
    }
};

/// The first column of each row.
struct FirstColumn {
    using Shared = NoShared;
    RowsView view;
    std::int64_t* out;
    std::uint64_t rows;

    TH_STEP void operator()(NoShared&) const {
        for_rows(rows, [&](std::uint64_t row) { out[row] = view.at(row, 0); });
    }
};

/// The batch of each row, or its rank among `sorted`, as a key to sort by.
struct BatchKeys {
    using Shared = NoShared;
    RowsView view;
    std::int64_t const* sorted;  // the batches that occur; null: batches are their own ranks
    std::uint64_t size;          // of `sorted`
    std::uint32_t* keys;
    std::uint64_t rows;

    TH_STEP void operator()(NoShared&) const {
        for_rows(rows, [&](std::uint64_t row) {
            std::int64_t const batch = view.at(row, 0);
            keys[row] = static_cast<std::uint32_t>(sorted != nullptr ? rank_of(batch) : batch);
        });
    }

private:
    TH_STEP std::int64_t rank_of(std::int64_t batch) const {
        std::uint64_t low = 0;
        for (std::uint64_t left = size; left != 0;) {
            std::uint64_t const half = left / 2;
            bool const above = sorted[low + half] < batch;
            low = above ? low + half + 1 : low;
            left = above ? left - half - 1 : half;
        }
        return static_cast<std::int64_t>(low);
    }
};

}  // namespace tensorhash::device
