// Gradient steps on the entries of a batch. Rows of equal keys step in order or are summed first.
#pragma once

#include <optional>
#include <vector>

#include "table/table.hpp"

namespace tensorhash::table {

/// The gradients of a batch, ready to apply: everything that can fail is done.
class Steps {
public:
    /// `gradients` must outlive this and be aligned to their dtype.
    Steps(Table const& table, backend::KeyRows keys, Element const& gradient, Bytes gradients,
          DuplicateKeys duplicates);
    /// Steps the entries at `indices`, one per row of the batch; skips -1.
    void apply(Table& table, std::uint32_t const* indices, RowStep const& step) noexcept;

private:
    std::size_t rows_;  // gradients to apply
    std::size_t row_bytes_;
    Bytes gradients_;
    std::size_t parts_;
    std::vector<unsigned char*> columns_;  // scratch of each part: an entry's address per column
    // For DuplicateKeys::Sum only.
    std::optional<Table> sums_;    // distinct keys with their summed gradients
    runtime::Block sum_of_row_;    // the sum that each row went to
    runtime::Block index_of_sum_;  // the buffer index of each sum's key
    std::size_t batch_rows_;
};

/// A prepared update: it has all its memory, but no step is made yet.
struct Updating {
    Steps steps;
    RowStep built;  // the optimizer's step; empty if the caller gave one
    std::optional<Insertion> insertion;
};

// In two steps, like Table's changes.
Updating prepare_update(Table& table, backend::Update const& batch);
void cancel(Table& table, Updating& updating) noexcept;
void finish_update(Table& table, backend::Update const& batch, Updating&& updating) noexcept;

}  // namespace tensorhash::table
