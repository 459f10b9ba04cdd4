// Optimizer steps on a table's values: rows to entries, equal keys in order or summed.
#pragma once

#include <optional>
#include <vector>

#include "map/arguments.hpp"
#include "table/table.hpp"

namespace tensorhash::table {

/// The gradients of a batch, ready to be applied: whatever can fail has been done.
class Steps {
public:
    /// `keys` and `gradients` outlive it; gradients lie at an address that suits their dtype.
    Steps(Table const& table, Element const& key, Batch const& keys, Element const& gradient,
          Batch const& gradients, Duplicates duplicates);
    /// Steps the entries that the rows of the batch were found at; -1 is skipped.
    void apply(Table& table, std::uint32_t const* numbers, RowStep const& step) noexcept;

private:
    std::size_t rows_;  // of gradients to apply
    std::size_t row_bytes_;
    Bytes gradients_;
    std::size_t parts_;
    std::vector<unsigned char*> columns_;  // scratch, a row of the table's columns for each part
    std::optional<Table> sums_;    // Duplicates::Sum: distinct keys with their gradients added up
    runtime::Block sum_of_row_;    // and which of them each row went to
    runtime::Block first_of_sum_;  // and the number of each
    std::size_t batch_rows_;
};

/// Gradients as a batch of so many rows, aligned; throws otherwise.
Batch check_gradients(Tensor const& gradients, Element const& element, std::size_t rows);

/// Throws KeyError that names the first row of the mask that is 0, and what `missing` may be for
/// this to be no error.
void require_found(unsigned char const* mask, std::size_t rows,
                   char const* otherwise = "skip or insert");

/// UpdateOptions::initial, checked; none if it is not given.
std::optional<Fill> check_initial(UpdateOptions const& options, std::vector<Element> const& columns,
                                  std::size_t rows);

/// After activate(): writes the initial weights of the rows that added their key, and turns the mask from "added" into
/// "was there".
void settle_added(Table& table, std::optional<Fill> const& initial, std::size_t rows,
                  Answers const& where) noexcept;

}  // namespace tensorhash::table
