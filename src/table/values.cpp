// What happens to values when keys come: new rows are written, others joined to what is stored, in row order.
#include <array>
#include <cstring>

#include "runtime/parallel.hpp"
#include "table/reduce.hpp"
#include "table/row_order.hpp"
#include "table/rows.hpp"
#include "table/table.hpp"
#include "tensorhash/step/platform.hpp"

namespace tensorhash::table {
namespace {

/// Calls visit(row) for the rows whose mask is `wanted`, an entry's rows in row order; `column` is asked for ahead.
template <class Visit>
void visit_by_entry(Column const& column, std::size_t rows, Answers const& where,
                    unsigned char wanted, Visit&& visit) {
    in_row_order(
        row_order_parts(rows), rows, where.numbers,
        [&](std::size_t row) {
            if (where.numbers[row] != kernel::kNoNumber) {
                kernel::prefetch_for_write(column.row(where.numbers[row]));
            }
        },
        [&](std::size_t, std::size_t row) {
            if (where.mask[row] == wanted) {
                visit(row);
            }
        });
}

/// Joins the rows whose mask is `wanted` into the column.
void join_rows(Column& column, Bytes from, std::size_t rows, Answers const& where,
               unsigned char wanted, Join const& join, std::uint32_t const* order = nullptr) {
    visit_by_entry(column, rows, where, wanted, [&](std::size_t row) {
        std::size_t const at = order == nullptr ? row : order[row];
        join(column.row(where.numbers[row]), from + at * column.row_bytes);
    });
}

}  // namespace

void Table::activate(Bytes keys, std::size_t rows, Answers out, KeySource source) {
    finish_activate(prepare_add(keys, rows, out, source));
}

void Table::finish_activate(Adding&& adding) noexcept {
    if (finish_add(adding).claimed == 0) {
        return;
    }
    // Fresh rows too: somebody may have written there through a view.
    kernel::BatchView const& batch = adding.batch;
    for (Column& column : values_) {
        runtime::for_ranges(adding.rows, runtime::kGrain, [&](std::size_t begin, std::size_t end) {
            for (std::size_t row = begin; row < end; ++row) {
                if (batch.mask[row] != 0) {
                    std::memset(column.row(batch.numbers[row]), 0, column.row_bytes);
                }
            }
        });
    }
}

void Table::upsert(Bytes keys, std::size_t rows, std::span<Bytes const> values,
                   std::span<Reduce const> reduce, Answers out) {
    finish_upsert(prepare_add(keys, rows, out), values, reduce);
}

void Table::finish_upsert(Adding&& adding, std::span<Bytes const> values,
                          std::span<Reduce const> reduce, std::uint32_t const* order) noexcept {
    Adding::Counts const added = finish_add(adding);
    Answers const out{adding.batch.numbers, adding.batch.mask};
    for (std::size_t i = 0; i < values_.size(); ++i) {
        write_new(values_[i], values[i], adding.rows, out, added, order);
        if (added.claimed < adding.rows && reduce[i] != Reduce::First) {
            join_rows(values_[i], values[i], adding.rows, out, 0, Join(elements_[i], reduce[i]),
                      order);
        }
    }
}

void Table::assign(Bytes keys, std::size_t rows, std::span<Bytes const> values, Answers out,
                   std::uint32_t const* order) {
    find(keys, rows, out);
    for (std::size_t i = 0; i < values_.size(); ++i) {
        join_rows(values_[i], values[i], rows, out, 1, Join(elements_[i], Reduce::Last), order);
    }
}

void Table::visit_found(Answers const& found, std::size_t rows, RowVisit const& visit) {
    visit_by_entry(values_.empty() ? keys_ : values_[0], rows, found, 1, [&](std::size_t row) {
        std::array<void*, 8> few;  // most tables have no more columns: no allocation a row
        std::vector<void*> many(values_.size() > few.size() ? values_.size() : 0);
        void** const at = many.empty() ? few.data() : many.data();
        for (std::size_t i = 0; i < values_.size(); ++i) {
            at[i] = values_[i].row(found.numbers[row]);
        }
        visit(row, at);
    });
}

Remembered Table::remember(Answers const& found, std::size_t rows) const {
    Remembered before;
    for (Column const& column : values_) {
        before.columns.emplace_back(rows * column.row_bytes);
        gather_rows(before.columns.back().data(), column.block->data(), column.row_bytes,
                    found.numbers, rows);
    }
    return before;
}

void Table::put_back(Remembered const& before, Answers const& found, std::size_t rows) noexcept {
    for (std::size_t i = 0; i < values_.size(); ++i) {
        join_rows(values_[i], before.columns[i].data(), rows, found, 1,
                  Join(elements_[i], Reduce::Last));
    }
}

}  // namespace tensorhash::table
