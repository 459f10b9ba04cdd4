// Steps on the values of a batch's keys: rows to entries, equal keys in order or summed.
#pragma once

#include <optional>
#include <vector>

#include "table/table.hpp"

namespace tensorhash::table {

/// The gradients of a batch, ready to be applied: whatever can fail has been done.
class Steps {
public:
    /// `keys` and `gradients` outlive it; gradients lie at an address that suits their dtype.
    Steps(Table const& table, backend::KeyRows keys, Element const& gradient, Bytes gradients,
          Duplicates duplicates);
    /// Steps the entries that the rows of the batch were found at; -1 is skipped.
    void apply(Table& table, std::uint32_t const* indices, RowStep const& step) noexcept;

private:
    std::size_t rows_;  // of gradients to apply
    std::size_t row_bytes_;
    Bytes gradients_;
    std::size_t parts_;
    std::vector<unsigned char*> columns_;  // scratch, a row of the table's columns for each part
    std::optional<Table> sums_;    // Duplicates::Sum: distinct keys with their gradients added up
    runtime::Block sum_of_row_;    // and which of them each row went to
    runtime::Block first_of_sum_;  // and the buffer index of each
    std::size_t batch_rows_;
};

/// An update that has all its memory but is not yet made.
struct Updating {
    Steps steps;
    RowStep built;  // of the optimizer; empty if the step is the caller's
    std::optional<Insertion> insertion;
};

// As Table's two steps.
Updating prepare_update(Table& table, backend::Update const& batch);
void cancel(Table& table, Updating& updating) noexcept;
void finish_update(Table& table, backend::Update const& batch, Updating&& updating) noexcept;

}  // namespace tensorhash::table
