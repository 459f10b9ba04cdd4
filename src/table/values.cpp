// Joins rows with stored values, in row order.
#include <array>
#include <cstring>
#include <utility>

#include "runtime/parallel.hpp"
#include "table/reduce.hpp"
#include "table/row_order.hpp"
#include "table/rows.hpp"
#include "table/table.hpp"
#include "tensorhash/step/platform.hpp"

namespace tensorhash::table {
namespace {

/// Calls visit(row) for the rows with mask `wanted`, rows of one entry in row order. Prefetches
/// the entries of `column`.
template <class Visit>
void visit_by_entry(Column const& column, std::size_t rows, Answers const& where,
                    unsigned char wanted, Visit&& visit) {
    in_row_order(
        row_order_parts(rows), rows, where.indices,
        [&](std::size_t row) {
            if (where.indices[row] != step::kNotFound) {
                step::prefetch_for_write(column.row(where.indices[row]));
            }
        },
        [&](std::size_t, std::size_t row) {
            if (where.mask[row] == wanted) {
                visit(row);
            }
        });
}

/// Joins the rows with mask `wanted` into the column.
void join_rows(Column& column, Bytes from, std::size_t rows, Answers const& where,
               unsigned char wanted, Join const& join, std::uint32_t const* order = nullptr) {
    visit_by_entry(column, rows, where, wanted, [&](std::size_t row) {
        std::size_t const at = order == nullptr ? row : order[row];
        join(column.row(where.indices[row]), from + at * column.row_bytes);
    });
}

}  // namespace

void Table::insert_or_assign(Bytes keys, std::size_t rows, backend::ValueRows const& values,
                             Answers out, KeySource source) {
    finish_insert_or_assign(prepare_insert(keys, rows, out, source), values);
}

void Table::finish_insert_or_assign(Insertion&& insertion,
                                    backend::ValueRows const& values) noexcept {
    static constexpr Reduce kLast = Reduce::Last;
    finish_accumulate(std::move(insertion), values, {&kLast, 1});
}

void Table::accumulate(Bytes keys, std::size_t rows, backend::ValueRows const& values,
                       std::span<Reduce const> reduce, Answers out, KeySource source) {
    finish_accumulate(prepare_insert(keys, rows, out, source), values, reduce);
}

void Table::finish_accumulate(Insertion&& insertion, backend::ValueRows const& values,
                              std::span<Reduce const> reduce) noexcept {
    Insertion::Counts const added = finish_keys(insertion);
    Answers const out{insertion.batch.buf_indices, insertion.batch.mask};
    for (std::size_t i = 0; i < values_.size(); ++i) {
        Reduce const how = reduce[reduce.size() == 1 ? 0 : i];
        write_new(values_[i], values.columns[i], insertion.rows, out, added, values.order);
        if (added.claimed < insertion.rows && how != Reduce::First) {
            join_rows(values_[i], values.columns[i], insertion.rows, out, 0,
                      Join(elements_[i], how), values.order);
        }
    }
}

void Table::assign(Bytes keys, std::size_t rows, backend::ValueRows const& values, Answers out) {
    find(keys, rows, out);
    for (std::size_t i = 0; i < values_.size(); ++i) {
        join_rows(values_[i], values.columns[i], rows, out, 1, Join(elements_[i], Reduce::Last),
                  values.order);
    }
}

void Table::visit_found(Answers const& found, std::size_t rows, RowChange const& change) {
    visit_by_entry(values_.empty() ? keys_ : values_[0], rows, found, 1, [&](std::size_t row) {
        std::array<void*, 8> few;  // enough for most tables: no allocation per row
        std::vector<void*> many(values_.size() > few.size() ? values_.size() : 0);
        void** const at = many.empty() ? few.data() : many.data();
        for (std::size_t i = 0; i < values_.size(); ++i) {
            at[i] = values_[i].row(found.indices[row]);
        }
        change(row, at);
    });
}

Remembered Table::remember(Answers const& found, std::size_t rows) const {
    Remembered before;
    for (Column const& column : values_) {
        before.columns.emplace_back(rows * column.row_bytes);
        gather_rows(before.columns.back().data(), column.block->data(), column.row_bytes,
                    found.indices, rows);
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
