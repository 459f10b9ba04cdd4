// What happens to values when keys come: new rows are written, others joined to what is stored, in row order.
#include <cstring>

#include "runtime/parallel.hpp"
#include "table/reduce.hpp"
#include "table/row_order.hpp"
#include "table/table.hpp"

namespace tensorhash::table {
namespace {

/// Joins every row that is not a key's first into the column.
void join_rows(Column& column, Bytes from, std::size_t rows, Answers const& where,
               Join const& join) {
    in_row_order(
        row_order_parts(rows), rows, where.numbers,
        [&](std::size_t row) { __builtin_prefetch(column.row(where.numbers[row]), 1); },
        [&](std::size_t, std::size_t row) {
            if (where.mask[row] == 0) {
                join(column.row(where.numbers[row]), from + row * column.row_bytes);
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
