// What a bounded table adds to a table: scores, uses, and batches that may evict.
#pragma once

#include <optional>
#include <vector>

#include "table/evict.hpp"
#include "table/reduce.hpp"
#include "tensorhash/eviction.hpp"

namespace tensorhash::table {

/// The two columns behind the caller's: an entry's score, and its last use.
inline Element const kScore{Dtype::Int64, {}};
inline Element const kUse{Dtype::UInt64, {}};

/// The caller's columns and the two.
std::vector<Element> with_hidden(std::vector<Element> values);
/// How rows are joined, for each of the caller's columns and the two. `reduce` has one for all
/// columns or one per column.
std::vector<Reduce> with_hidden(std::vector<Reduce> const& reduce, std::size_t columns);

/// What a bounded table keeps beside its columns.
struct Ledger {
    explicit Ledger(Eviction how) : eviction(how) {}
    /// A copy for a copy of the table; scratch and candidates are made again when they are needed.
    Ledger copy() const {
        Ledger made(eviction);
        made.clock = clock;
        made.uses = uses;
        return made;
    }
    void end_batch(std::size_t rows) noexcept {
        ++clock;
        uses += rows;
    }

    Eviction eviction;
    std::uint64_t clock = 0;  // batches so far
    std::uint64_t uses = 0;   // rows so far: a row's place among all rows ever is its use
    Victims victims;
    std::vector<Visit> visits;  // scratch, made by the first batch that evicts
};

/// A bounded table: the entries and the ledger.
struct BoundedState {
    Table& table;
    Ledger& ledger;

    Column& score_column() const { return table.raw_values()[table.values().size() - 2]; }
    Column& use_column() const { return table.raw_values().back(); }
    std::int64_t const* scores() const {
        return reinterpret_cast<std::int64_t const*>(score_column().block->data());
    }
    std::uint64_t const* last_uses() const {
        return reinterpret_cast<std::uint64_t const*>(use_column().block->data());
    }
};

/// Rows of the two columns for a batch: the caller's scores or the clock, and the uses.
class UsedRows {
public:
    /// `scores` is int64 [rows]; null: the clock.
    UsedRows(Ledger const& ledger, std::size_t rows, Bytes scores);
    Bytes scores() const { return scores_.data(); }
    Bytes uses() const { return uses_.data(); }
    std::int64_t const* score_numbers() const {
        return reinterpret_cast<std::int64_t const*>(scores_.data());
    }
    /// The lowest score; the largest number if there are no rows.
    std::int64_t lowest_score() const noexcept { return lowest_; }

private:
    runtime::Block scores_;
    runtime::Block uses_;
    std::int64_t lowest_;
};

/// Rows that want to be in a table. `values`, `elements` and `reduce` are for all columns, the two included.
struct Candidates {
    Element const& key;
    std::vector<Element> const& elements;
    Bytes keys;
    std::size_t rows;
    std::vector<Bytes> const& values;
    std::vector<Reduce> const& reduce;
    UsedRows const& used;
    std::uint32_t const* order =
        nullptr;  // row i is row order[i] of `values` and `used`; null: row i
};

/// The distinct keys of a batch.
struct Distinct {
    std::vector<std::uint32_t> of_row;  // [rows]
    std::vector<std::uint32_t> where;   // [distinct]: their numbers in the table
};

/// A batch with a plan and room, but not yet the table's.
struct Admission {
    std::size_t leaving() const noexcept { return plan ? plan->leaving.size() : 0; }

    runtime::Block keys;  // a copy of the batch's, if they are looked at more than once
    std::optional<Insertion> insertion;  // everything fits
    std::optional<Plan> plan;            // or somebody leaves: what follows is for that
    Distinct distinct;
    std::vector<Join> joins;
    runtime::Block arriving;
    Replacing replacing;
};

/// Room for so many that leave.
Evicted make_evicted(Element const& key, std::vector<Element> const& elements, std::size_t rows);

/// In two steps, for a caller that changes several tables or none, as Table's: prepare may throw, and then nothing is
/// changed; finish cannot fail, and writes who leaves to `evicted`, the i-th to row place[i] (null: to row i). The caller
/// ends the batch.
Admission prepare_admit(BoundedState const& state, Candidates const& batch, Answers out);
void cancel_admit(BoundedState const& state, Admission& admission) noexcept;
void finish_admit(BoundedState const& state, Candidates const& batch, Admission&& admission,
                  Answers out, Evicted& evicted, std::uint32_t const* place = nullptr) noexcept;

/// Uses the entries at `numbers` (-1: none). Scores are set if it evicts by use or if they were given.
void touch(BoundedState const& state, UsedRows const& used, std::uint32_t const* numbers,
           std::size_t rows, bool has_scores, std::uint32_t const* order = nullptr) noexcept;

/// Clock and uses end here: no table gets there by counting. A file may say half of it, so that its
/// table can go on.
inline constexpr std::uint64_t kLastCount = std::uint64_t{1} << 62;
inline constexpr std::uint64_t kLastCountOfFile = kLastCount / 2;

/// Throws CorruptTable unless clock and uses can go on, uses are distinct and past, and with
/// Eviction::Lru scores are clocks that ascend with the uses.
void validate_uses(BoundedState const& state);

/// What a table of so many entries reports, the two columns and the ledger as bookkeeping.
MemoryUsage memory_of(BoundedState const& state);

}  // namespace tensorhash::table
