// A batch that evicts, thought through row by row before anything changes.
#pragma once

#include <cstdint>
#include <vector>

#include "table/table.hpp"
#include "table/victims.hpp"

namespace tensorhash::table {

inline constexpr std::uint32_t kNone = 0xffffffffu;

/// What the batch knows of the entry at a number; all kNone between batches.
struct Visit {
    std::uint32_t distinct = kNone;  // which distinct key of the batch lives there
    std::uint32_t last_row = kNone;  // the last row that used it
    std::uint32_t key_row = kNone;   // the row that added it, if this batch did
};

/// One entry that leaves.
struct Leaving {
    std::uint32_t number;   // where it was; kNone for a row that did not get in
    std::uint32_t key_row;  // the row whose key it is; kNone if it was there before the batch
};

/// The batch as the rules see it.
struct RankedRows {
    std::size_t rows;
    std::uint32_t const* distinct;  // [rows]: which distinct key each row has
    std::int64_t const* scores;
    std::uint64_t first_use;     // row r is use first_use + r
    std::uint32_t const* order;  // row i has score and use of row order[i]; null: of row i
};

/// The table as the rules see it, and the scratch that is kept for it.
struct RankedTable {
    Table const& table;
    std::int64_t const* scores;  // [capacity]
    std::uint64_t const* uses;   // [capacity]
    Victims& victims;
    std::vector<Visit>& visits;  // [capacity]
};

/// What every row does.
struct Plan {
    std::vector<std::uint32_t>
        numbers;  // [rows]: the entry that the row goes to; kNone: it does not get in
    std::vector<std::uint32_t>
        leaves;  // [rows]: which of `leaving` leaves for the row; kNone: nobody
    std::vector<unsigned char> added;     // [rows]
    std::vector<Leaving> leaving;         // in order
    std::vector<std::uint32_t> replaced;  // numbers whose entry from before the batch is gone
    std::vector<std::uint32_t>
        arriving;  // rows: the keys now at `replaced`, then those at new numbers in order
};

/// `where` [distinct keys] says where each is, kNone if nowhere, and is left saying where each ends up. Throws
/// std::bad_alloc, having changed nothing but `where` and `victims`, which the caller then forgets.
Plan plan_batch(RankedRows const& batch, RankedTable const& table,
                std::vector<std::uint32_t>& where);

}  // namespace tensorhash::table
