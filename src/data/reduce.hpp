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

/// Adds rows that are already numbered. One thread per fold.
void add_numbered(Plan const& plan, std::vector<Column> const& columns,
                  std::uint32_t const* numbers, std::size_t rows, std::int64_t first_row,
                  States& states);
/// The same for a batch that was just numbered: translates the numbers while it adds.
void add_numbered(Plan const& plan, std::vector<Column> const& columns, Numbering& numbering,
                  std::size_t rows, States& states);

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
