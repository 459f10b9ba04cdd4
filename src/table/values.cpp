// What happens to values when keys come: new rows are written, others joined to what is stored, in row order.
#include <algorithm>
#include <cstring>

#include "runtime/parallel.hpp"
#include "table/reduce.hpp"
#include "table/table.hpp"
#include "tensorhash/threads.hpp"

namespace tensorhash::table {
namespace {

// Rows in a row order pass whose destination is asked for ahead.
constexpr std::size_t kAhead = 16;

/// Joins every row that is not a key's first into the column. Each task walks all rows in order but touches only the
/// entries that are its own, so that an entry's rows are joined in row order on any number of threads.
void join_rows(Column& column, Bytes from, std::size_t rows, Answers const& where,
               Join const& join) {
    std::size_t const parts =
        rows < runtime::kGrain ? 1
                               : std::min<std::size_t>(static_cast<std::size_t>(num_threads()), 8);
    runtime::run_tasks(parts, [&](std::size_t part) {
        // Sixteen neighbours go to one task: entries that share a cache line are not torn between threads.
        auto const is_mine = [&](std::uint32_t number) { return (number >> 4) % parts == part; };
        for (std::size_t row = 0; row < rows; ++row) {
            if (row + kAhead < rows) {
                __builtin_prefetch(column.row(where.numbers[row + kAhead]), 1);
            }
            if (where.mask[row] == 0 && is_mine(where.numbers[row])) {
                join(column.row(where.numbers[row]), from + row * column.row_bytes);
            }
        }
    });
}

}  // namespace

void Table::activate(Bytes keys, std::size_t rows, Answers out) {
    Added const added = add(keys, rows, out);
    if (added.claimed == 0) {
        return;
    }
    // Fresh rows too: somebody may have written there through a view.
    for (Column& column : values_) {
        runtime::for_ranges(rows, runtime::kGrain, [&](std::size_t begin, std::size_t end) {
            for (std::size_t row = begin; row < end; ++row) {
                if (out.mask[row] != 0) {
                    std::memset(column.row(out.numbers[row]), 0, column.row_bytes);
                }
            }
        });
    }
}

void Table::upsert(Bytes keys, std::size_t rows, std::span<Bytes const> values,
                   std::span<Reduce const> reduce, Answers out) {
    Added const added = add(keys, rows, out);
    for (std::size_t i = 0; i < values_.size(); ++i) {
        write_new(values_[i], values[i], rows, out, added);
        if (added.claimed < rows && reduce[i] != Reduce::First) {
            join_rows(values_[i], values[i], rows, out, Join(elements_[i], reduce[i]));
        }
    }
}

}  // namespace tensorhash::table
