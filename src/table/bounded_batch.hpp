// What a bounded table adds to a table: scores, uses, and batches that may evict.
#pragma once

#include <vector>

#include "io/file.hpp"
#include "table/arguments.hpp"
#include "table/evict.hpp"
#include "tensorhash/bounded_map.hpp"

namespace tensorhash::table {

/// The two columns behind the caller's: an entry's score, and its last use.
inline Element const kScore{Dtype::Int64, {}};
inline Element const kUse{Dtype::UInt64, {}};

struct BoundedState {
    BoundedState(Table t, Eviction how) : table(std::move(t)), eviction(how) {}

    Table table;
    Eviction eviction;
    std::uint64_t clock = 0;  // batches so far
    std::uint64_t uses = 0;   // rows so far: a row's place among all rows ever is its use
    Victims victims;
    std::vector<Visit> visits;  // scratch, made by the first batch that evicts

    Column& score_column() { return table.raw_values()[table.values().size() - 2]; }
    Column& use_column() { return table.raw_values().back(); }
    std::int64_t const* scores() const {
        auto const& column = table.values()[table.values().size() - 2];
        return reinterpret_cast<std::int64_t const*>(column.block->data());
    }
    std::uint64_t const* last_uses() const {
        return reinterpret_cast<std::uint64_t const*>(table.values().back().block->data());
    }
};

/// Rows of the two columns for a batch: the caller's scores or the clock, and the uses.
class UsedRows {
public:
    UsedRows(BoundedState const& state, std::size_t rows, Batch const* scores);
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

/// A batch of keys and values, the two columns included; `elements` and `reduce` are for all columns. All or nothing.
Admitted admit(BoundedState& state, Element const& key, std::vector<Element> const& elements,
               Batch const& keys, std::vector<Bytes> const& values,
               std::vector<Reduce> const& reduce, UsedRows const& used);

/// A batch that uses the entries at `numbers` (-1: none) and ends. Scores are set if it evicts by use or if they were given.
void touch(BoundedState& state, UsedRows const& used, std::uint32_t const* numbers,
           std::size_t rows, bool has_scores) noexcept;

/// Throws CorruptTable unless uses are distinct and past, and clocks not ahead of the clock.
void validate_uses(BoundedState const& state);

void write_bounded(io::Sink& sink, Element const& key, std::vector<Element> const& elements,
                   BoundedState const& state);

}  // namespace tensorhash::table
