// Plans the evictions of a batch, row by row, before anything changes.
#pragma once

#include <cstdint>
#include <vector>

#include "table/table.hpp"
#include "table/victims.hpp"
#include "tensorhash/step/bucket.hpp"
#include "tensorhash/step/flat.hpp"

namespace tensorhash::table {

using step::kNoRow;
using step::kNotFound;

inline constexpr std::uint32_t kNoKey = 0xffffffffu;       // no distinct key of the batch
inline constexpr std::uint32_t kNoEviction = 0xffffffffu;  // no entry of EvictionPlan::leaving

/// What the current batch did with the entry at a buffer index. Reset between batches.
struct EntryUse {
    std::uint32_t distinct = kNoKey;  // the batch's distinct key that lives there
    std::uint32_t last_row = kNoRow;  // the last row that used it
    std::uint32_t key_row = kNoRow;   // the row that added it, if this batch did
};

/// One evicted entry.
struct Leaving {
    std::uint32_t buf_index;  // where it was; kNotFound: a row that was not admitted
    std::uint32_t key_row;    // the row that added its key; kNoRow: it is older than the batch
};

/// The batch as the eviction rules see it.
struct RankedRows {
    std::size_t rows;
    std::uint32_t const* distinct;  // [rows]: each row's distinct key
    std::int64_t const* scores;
    std::uint64_t first_use;     // row r is use first_use + r
    std::uint32_t const* order;  // row i has the score and use of row order[i]; null: of row i
};

/// The table as the eviction rules see it, and the scratch that it keeps for them.
struct RankedTable {
    Table const& table;
    std::int64_t const* scores;  // [capacity]
    std::uint64_t const* uses;   // [capacity]
    Victims& victims;
    std::vector<EntryUse>& visits;  // [capacity]
};

/// What every row does.
struct EvictionPlan {
    // [rows]: the buffer index that the row goes to; kNotFound: it is not admitted
    std::vector<std::uint32_t> buf_indices;
    // [rows]: the entry of `leaving` that the row evicts, possibly itself; kNoEviction: none
    std::vector<std::uint32_t> leaves;
    std::vector<unsigned char> added;  // [rows]: 1 if the row adds its key
    std::vector<Leaving> leaving;      // in order of eviction
    // Buffer indices that lose an entry older than the batch.
    std::vector<std::uint32_t> replaced;
    // Rows with the keys that end up at `replaced`, then at new buffer indices, in order.
    std::vector<std::uint32_t> arriving;
};

/// `where` [distinct keys] has each key's buffer index, kNotFound if absent; it is updated to the
/// state after the batch. If this throws std::bad_alloc, only `where` and `victims` have changed;
/// the caller then calls victims.forget().
EvictionPlan plan_batch(RankedRows const& batch, RankedTable const& table,
                        std::vector<std::uint32_t>& where);

}  // namespace tensorhash::table
