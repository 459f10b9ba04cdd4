// Runs the folds of a plan over the rows of a batch, in row order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "data/columns.hpp"
#include "data/numbering.hpp"
#include "data/plan.hpp"

namespace tensorhash::data {

/// States of `groups` groups without a row.
States new_states(Plan const& plan, std::size_t groups);

/// Rows [begin, end) of the columns. numbers[i] is the group of row begin + i, and row r has the
/// number first_row + r.
struct NumberedRows {
    std::size_t begin;
    std::size_t end;
    std::uint32_t const* numbers;
    std::int64_t first_row;
};

/// Adds rows to the states of one fold.
void add_rows(Fold const& fold, std::vector<Column> const& columns, NumberedRows const& rows,
              std::uint64_t* states);

/// Adds all rows of a batch. One thread per fold.
void add_numbered(Plan const& plan, std::vector<Column> const& columns,
                  std::uint32_t const* numbers, std::size_t rows, std::int64_t first_row,
                  States& states);

/// The groups of a batch and their states.
struct Reduced {
    Tensor first_rows;  // int64 [groups]
    States states;

    std::size_t groups() const { return static_cast<std::size_t>(first_rows.size()); }
};

/// For many narrow keys: partitions the rows with their values, then groups part by part, in cache.
/// `groups` is an estimate.
Reduced reduce_by_parts(Plan const& plan, std::vector<Column> const& columns, KeyRows const& keys,
                        step::HashSecret const& secret, double groups);

}  // namespace tensorhash::data
