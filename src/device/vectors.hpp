// Bodies of the table of vectors: rows of any number of int32 columns, hashed with Murmur.
#pragma once

#include <cstdint>

#include "device/flat.hpp"
#include "tensorhash/step/vector_key.hpp"

namespace tensorhash::device {

/// Each key's slot gets the smallest of its rows.
struct ClaimVectors {
    using Shared = NoShared;
    step::VectorView table;
    std::uint32_t first_row;
    FlatState* state;
    std::uint32_t rows;  // from first_row on

    TH_STEP void operator()(NoShared&) const {
        SlotClaims claims;
        for_rows(rows, [&](std::uint64_t i) {
            claims.add(state, [&] {
                return step::vector_claim<step::Shared>(
                    table, first_row + static_cast<std::uint32_t>(i), table.columns);
            });
        });
        claims.add_to(state);
    }
};

/// Undoes the claims of the last batch, as DropFlat.
struct DropVectors {
    using Shared = NoShared;
    step::VectorView table;
    std::uint32_t first_row;

    TH_STEP void operator()(NoShared&) const {
        for_rows(std::uint64_t{table.mask} + 1, [&](std::uint64_t at) {
            if (step::vector_row(table.slots[at]) >= first_row) {
                table.slots[at] = step::kEmptyVectorSlot;
            }
        });
    }
};

struct FindVectors {
    using Shared = NoShared;
    step::VectorView table;
    FlatState const* state;
    std::int32_t const* queries;   // [rows, columns]
    unsigned char const* outside;  // [rows]: queries outside int32; null: none
    std::uint32_t* found;          // [rows]: row or kNoRow
    std::uint64_t rows;

    TH_STEP void operator()(NoShared&) const {
        step::VectorView view = table;
        view.longest = state->longest;
        for_rows(rows, [&](std::uint64_t row) {
            std::int32_t const* const query = queries + row * view.columns;
            bool const fits = outside == nullptr || outside[row] == 0;
            std::uint32_t const start = step::murmur(query, view.columns) & view.mask;
            found[row] = fits ? step::vector_find(view, query, view.columns, start) : step::kNoRow;
        });
    }
};

}  // namespace tensorhash::device
