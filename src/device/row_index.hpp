// Bodies of an index from rows of 1 to 7 int32 columns to row numbers, the first of equal rows. It
// has packed keys if all rows have one. Otherwise its slots point at rows, which are compared.
#pragma once

#include <cstdint>

#include "device/flat.hpp"
#include "tensorhash/step/hash.hpp"

namespace tensorhash::device {

/// Slots that point at rows; at most half of them are taken.
struct WideView {
    std::uint32_t* slots;  // [mask + 1]: row or kNoRow
    std::uint32_t mask;
    step::HashSecret secret;
};

struct RowIndexView {
    FlatView packed;  // slots null: the index is wide
    FlatState const* packed_state;
    WideView wide;
    std::int32_t const* rows;  // [rows, columns]
    std::uint32_t columns;

    TH_STEP bool is_packed() const {
        return packed.slots != nullptr && packed_state->out_of_range == 0;
    }
    TH_STEP bool is_row(std::uint32_t number, CoordRow const& row) const {
        std::uint32_t difference = 0;
        for (std::uint32_t c = 0; c < kRowColumns; ++c) {
            if (c < columns) {
                std::int32_t const there = rows[std::uint64_t{number} * columns + c];
                difference |= static_cast<std::uint32_t>(there ^ row.numbers[c]);
            }
        }
        return difference == 0;
    }
    /// Where the probe of a row begins.
    TH_STEP std::uint32_t wide_start(CoordRow const& row) const {
        auto const word = [&](std::uint32_t c) {
            return std::uint64_t{static_cast<std::uint32_t>(row.numbers[c])} << 32 |
                   static_cast<std::uint32_t>(row.numbers[c + 1]);
        };
        std::uint64_t hash = wide.secret.start;
        for (std::uint32_t c = 0; c + 1 < kRowColumns; c += 2) {
            hash = step::fold_in(hash, word(c), wide.secret);
        }
        hash = step::end_with(hash, static_cast<std::uint32_t>(row.numbers[kRowColumns - 1]),
                              wide.secret);
        return static_cast<std::uint32_t>(hash) & wide.mask;
    }
};

/// Looks rows up. Reads the state of the index once per thread.
class RowLookup {
public:
    TH_STEP explicit RowLookup(RowIndexView const& view)
        : view_(view), packed_(view.packed), is_packed_(view.is_packed()) {
        if (is_packed_) {
            packed_.longest = view.packed_state->longest;
        }
    }
    /// The first row equal to `row`, or kNoRow.
    TH_STEP std::uint32_t find(CoordRow const& row) const {
        return is_packed_ ? find_flat(packed_, key_of(row)) : find_wide(row);
    }

private:
    TH_STEP std::uint32_t find_wide(CoordRow const& row) const {
        std::uint32_t at = view_.wide_start(row);
        for (std::uint32_t steps = 0;; ++steps, at = (at + 1) & view_.wide.mask) {
            std::uint32_t const number = view_.wide.slots[at];
            if (number == step::kNoRow || view_.is_row(number, row)) {
                return number;
            }
            if (steps == view_.wide.mask) {
                return step::kNoRow;
            }
        }
    }

    RowIndexView const& view_;
    FlatView packed_;
    bool is_packed_;
};

/// Each row's slot gets the smallest of the equal rows. Returns at once if the index is packed.
struct ClaimWide {
    using Shared = NoShared;
    RowIndexView index;
    std::uint32_t first_row;
    FlatState* state;    // of the wide slots
    std::uint32_t rows;  // from first_row on

    TH_STEP void operator()(NoShared&) const {
        if (index.is_packed()) {
            return;
        }
        std::uint32_t claimed = 0;
        for_rows(rows, [&](std::uint64_t i) {
            claimed += claim(first_row + static_cast<std::uint32_t>(i)) ? 1 : 0;
        });
        add_over_warp(&state->claimed, claimed);
    }

private:
    /// Relaxed order suffices: the rows were written before the launch, and a slot is one word.
    TH_STEP bool claim(std::uint32_t number) const {
        CoordRow const row = load_row(index.rows, number, index.columns);
        std::uint32_t at = index.wide_start(row);
        for (std::uint32_t steps = 0;; ++steps, at = (at + 1) & index.wide.mask) {
            std::uint32_t* const slot = &index.wide.slots[at];
            std::uint32_t seen = step::Shared::load(slot);
            if (seen == step::kNoRow && step::Shared::cas(slot, seen, number)) {
                return true;
            }
            // Here `seen` is a row, perhaps one that another thread has just claimed.
            if (index.is_row(seen, row)) {
                if (number < seen) {
                    fetch_min(slot, number);
                }
                return false;
            }
            if (steps == index.wide.mask) {
                raise_flag(&state->full);
                return false;
            }
        }
    }
};

/// Undoes the claims of the last batch, as DropFlat.
struct DropWide {
    using Shared = NoShared;
    WideView table;
    std::uint32_t first_row;

    TH_STEP void operator()(NoShared&) const {
        for_rows(std::uint64_t{table.mask} + 1, [&](std::uint64_t at) {
            if (table.slots[at] >= first_row) {
                table.slots[at] = step::kNoRow;
            }
        });
    }
};

/// A query with a number outside int32 is not found.
struct SearchRows {
    using Shared = NoShared;
    RowIndexView index;
    RowsView queries;
    std::uint32_t* found;  // [rows]: row or kNoRow
    std::uint64_t rows;

    TH_STEP void operator()(NoShared&) const {
        RowLookup const lookup(index);
        for_rows(rows, [&](std::uint64_t row) {
            CoordRow query;
            bool const fits =
                make_row(index.columns, [&](std::uint32_t c) { return queries.at(row, c); }, query);
            found[row] = fits ? lookup.find(query) : step::kNoRow;
        });
    }
};

/// Looks up queries[m] + offsets[k]. The query may be outside int32; the sum decides.
struct SearchShifted {
    using Shared = NoShared;
    RowIndexView index;
    RowsView queries;
    RowsView offsets;      // of int32
    std::uint32_t* found;  // [offsets, rows]
    std::uint64_t rows;    // queries
    std::uint64_t shifts;  // offsets

    TH_STEP void operator()(NoShared&) const {
        RowLookup const lookup(index);
        for_rows(rows * shifts, [&](std::uint64_t i) {
            CoordRow sum;
            bool const fits = make_row(
                index.columns,
                [&](std::uint32_t c) { return shifted(queries.at(i % rows, c), i / rows, c); },
                sum);
            found[i] = fits ? lookup.find(sum) : step::kNoRow;
        });
    }

private:
    /// Beyond 2^33 no int32 offset leads back into int32, and a sum could overflow.
    TH_STEP std::int64_t shifted(std::int64_t value, std::uint64_t k, std::uint32_t c) const {
        constexpr std::int64_t kNear = std::int64_t{1} << 33;
        return value >= -kNear && value <= kNear ? value + offsets.at(k, c) : value;
    }
};

/// Finds the smallest row that repeats another.
struct FindRepeat {
    using Shared = NoShared;
    RowIndexView index;
    std::uint64_t* repeat;  // kNoElement before the launch
    std::uint64_t rows;

    TH_STEP void operator()(NoShared&) const {
        RowLookup const lookup(index);
        for_rows(rows, [&](std::uint64_t row) {
            if (lookup.find(load_row(index.rows, row, index.columns)) != row) {
                fetch_min(repeat, row);
            }
        });
    }
};

/// Rows that are the first of their equals; found[row] is the first.
struct IsFirst {
    std::uint32_t const* found;
    TH_STEP bool operator()(std::uint64_t row) const { return found[row] == row; }
};

/// Rows that were not found.
struct IsAbsent {
    std::uint32_t const* found;
    TH_STEP bool operator()(std::uint64_t row) const { return found[row] == step::kNoRow; }
};

}  // namespace tensorhash::device
