// What a bounded table adds to a table: scores, uses and batches that may evict.
#pragma once

#include <optional>
#include <vector>

#include "table/evict.hpp"
#include "table/reduce.hpp"
#include "tensorhash/eviction.hpp"

namespace tensorhash::table {

/// Two hidden columns behind the caller's: an entry's score and its last use.
inline Element const kScore{Dtype::Int64, {}};
inline Element const kUse{Dtype::UInt64, {}};

/// The caller's columns, then the hidden ones.
std::vector<Element> with_hidden(std::vector<Element> values);
/// One reduce for each of the caller's columns, then those of the hidden ones. `reduce` has one for
/// all of the caller's columns or one per column.
std::vector<Reduce> with_hidden(std::vector<Reduce> const& reduce, std::size_t columns);

/// What a bounded table keeps besides its columns.
struct Ledger {
    explicit Ledger(Eviction how) : eviction(how) {}
    /// For a copy of the table. Scratch and candidates are built again when they are needed.
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
    std::uint64_t uses = 0;   // rows so far; a row's use is its position among all rows ever
    Victims victims;
    std::vector<EntryUse> visits;  // scratch, allocated by the first batch that evicts
};

/// A bounded table: its entries and its ledger.
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

/// A batch's rows of the hidden columns: the caller's scores or the clock, and the uses.
class UsedRows {
public:
    /// `scores` is int64 [rows]; null: the clock.
    UsedRows(Ledger const& ledger, std::size_t rows, Bytes scores);
    Bytes scores() const { return scores_.data(); }
    Bytes uses() const { return uses_.data(); }
    std::int64_t const* score_values() const {
        return reinterpret_cast<std::int64_t const*>(scores_.data());
    }
    /// The lowest score; INT64_MAX if there are no rows.
    std::int64_t lowest_score() const noexcept { return lowest_; }

private:
    runtime::Block scores_;
    runtime::Block uses_;
    std::int64_t lowest_;
};

/// A batch to insert. `values`, `elements` and `reduce` cover all columns, including the hidden
/// ones.
struct BoundedBatch {
    Element const& key;
    std::vector<Element> const& elements;
    Bytes keys;
    std::size_t rows;
    std::vector<Bytes> const& values;
    std::vector<Reduce> const& reduce;
    UsedRows const& used;
    // Row i has row order[i] of `values` and `used`; null: row i.
    std::uint32_t const* order = nullptr;
};

/// The distinct keys of a batch.
struct Distinct {
    std::vector<std::uint32_t> of_row;  // [rows]: the distinct key of each row
    std::vector<std::uint32_t> where;   // [distinct]: its buffer index in the table
};

/// A prepared insert: planned, with all its memory, but no key is added or evicted yet.
struct BoundedInsertion {
    std::size_t leaving() const noexcept { return plan ? plan->leaving.size() : 0; }

    runtime::Block keys;               // a copy of the batch's, if they are read more than once
    std::optional<Insertion> fitting;  // if everything fits
    std::optional<EvictionPlan> plan;  // if not; the members below belong to it
    Distinct distinct;
    std::vector<Join> joins;
    runtime::Block arriving;
    Replacing replacing;
};

/// Uninitialised results for `rows` evicted entries.
Evicted make_evicted(Element const& key, std::vector<Element> const& elements, std::size_t rows);

/// Insert in two steps like Table's, for a caller that changes several tables or none. A prepare
/// that throws changes nothing. finish cannot fail; it writes the i-th evicted entry to row
/// place[i] of `evicted` (null: row i). The caller then calls Ledger::end_batch().
BoundedInsertion prepare_insert(BoundedState const& state, BoundedBatch const& batch, Answers out);
void cancel(BoundedState const& state, BoundedInsertion& insertion) noexcept;
void finish_insert(BoundedState const& state, BoundedBatch const& batch,
                   BoundedInsertion&& insertion, Answers out, Evicted& evicted,
                   std::uint32_t const* place = nullptr) noexcept;

/// Marks the entries at `buf_indices` as used (-1: none). Sets their scores if the table evicts by
/// use or if the caller gave scores.
void touch(BoundedState const& state, UsedRows const& used, std::uint32_t const* buf_indices,
           std::size_t rows, bool has_scores, std::uint32_t const* order = nullptr) noexcept;

/// Limit of clock and uses, which no table reaches by counting. A file may contain at most half of
/// it, so that its table can count on.
inline constexpr std::uint64_t kLastCount = std::uint64_t{1} << 62;
inline constexpr std::uint64_t kLastCountOfFile = kLastCount / 2;

/// Throws CorruptTable unless clock and uses are within the limit, last uses are distinct and in
/// the past and, with Eviction::Lru, scores are past clocks that ascend with the uses.
void validate_uses(BoundedState const& state);

/// The hidden columns and the ledger count as bookkeeping.
MemoryUsage memory_of(BoundedState const& state);

}  // namespace tensorhash::table
