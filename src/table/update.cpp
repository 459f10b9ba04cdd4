// Gradient steps: everything that can fail first, then the entries in row order.
#include "table/update.hpp"

#include <algorithm>
#include <cstring>

#include "runtime/parallel.hpp"
#include "table/row_order.hpp"
#include "table/steps.hpp"
#include "tensorhash/step/bucket.hpp"
#include "tensorhash/step/platform.hpp"

namespace tensorhash::table {
namespace {

/// Writes the initial weights of the added keys, the rows with a set mask.
void write_initial(Column& weights, backend::DefaultRows const& initial, std::size_t rows,
                   Answers const& where) {
    runtime::for_ranges(rows, runtime::kGrain, [&](std::size_t begin, std::size_t end) {
        for (std::size_t row = begin; row < end; ++row) {
            if (where.mask[row] != 0) {
                std::memcpy(weights.row(where.indices[row]), initial.data + row * initial.step,
                            weights.row_bytes);
            }
        }
    });
}

}  // namespace

Steps::Steps(Table const& table, backend::KeyRows keys, Element const& gradient, Bytes gradients,
             DuplicateKeys duplicates)
    : rows_(keys.rows), row_bytes_(gradient.bytes()), gradients_(gradients),
      parts_(row_order_parts(rows_)), columns_(parts_ * table.values().size()),
      batch_rows_(keys.rows) {
    if (duplicates == DuplicateKeys::InOrder) {
        return;
    }
    sums_.emplace(table.key_element(), std::vector<Element>{gradient}, 0);
    sum_of_row_ = runtime::Block(rows_ * sizeof(std::uint32_t));
    runtime::Block mask(rows_);
    Reduce const sum = Reduce::Sum;
    sums_->accumulate(keys.data, rows_, {{&gradients, 1}}, {&sum, 1},
                      {reinterpret_cast<std::uint32_t*>(sum_of_row_.data()), mask.data()});
    rows_ = sums_->size();
    gradients_ = sums_->values()[0].block->data();
    index_of_sum_ = runtime::Block(rows_ * sizeof(std::uint32_t));
}

void Steps::apply(Table& table, std::uint32_t const* indices, RowStep const& step) noexcept {
    if (sums_) {
        auto const* const sum_of_row = reinterpret_cast<std::uint32_t const*>(sum_of_row_.data());
        auto* const index_of_sum = reinterpret_cast<std::uint32_t*>(index_of_sum_.data());
        for (std::size_t row = 0; row < batch_rows_; ++row) {
            index_of_sum[sum_of_row[row]] = indices[row];  // the same for all rows of a key
        }
        indices = index_of_sum;
    }
    std::vector<Column>& values = table.raw_values();
    std::size_t const count = values.size();
    in_row_order(
        parts_, rows_, indices,
        [&](std::size_t row) {
            if (indices[row] == step::kNotFound) return;
            for (Column& column : values) {
                step::prefetch_for_write(column.row(indices[row]));
            }
        },
        [&](std::size_t part, std::size_t row) noexcept {
            if (indices[row] == step::kNotFound) return;
            unsigned char** const columns = columns_.data() + part * count;
            for (std::size_t i = 0; i < count; ++i) {
                columns[i] = values[i].row(indices[row]);
            }
            step(UpdateRow({columns, count}, gradients_ + row * row_bytes_));
        });
}

Updating prepare_update(Table& table, backend::Update const& batch) {
    Updating updating{
        Steps(table, batch.keys, *batch.gradient, batch.gradients, batch.duplicates), {}, {}};
    if (auto const* const optimizer = std::get_if<Optimizer const*>(&batch.step)) {
        updating.built = make_step(**optimizer, table.value_elements()[0]);
    }
    if (batch.lookup == backend::Lookup::Insert) {
        updating.insertion =
            table.prepare_insert(batch.keys.data, batch.keys.rows, batch.out, batch.keys.source);
    } else if (batch.lookup == backend::Lookup::Find) {
        table.find(batch.keys.data, batch.keys.rows, batch.out);
    }
    return updating;
}

void cancel(Table& table, Updating& updating) noexcept {
    if (updating.insertion) {
        table.cancel(*updating.insertion);
    }
}

void finish_update(Table& table, backend::Update const& batch, Updating&& updating) noexcept {
    if (updating.insertion) {
        std::size_t const rows = batch.keys.rows;
        table.finish_activate(std::move(*updating.insertion));
        if (batch.initial.data != nullptr) {
            write_initial(table.raw_values()[0], batch.initial, rows, batch.out);
        }
        // The mask says "added"; update reports "was present".
        std::transform(batch.out.mask, batch.out.mask + rows, batch.out.mask,
                       [](unsigned char added) { return static_cast<unsigned char>(added ^ 1); });
    }
    auto const* const given = std::get_if<RowStep const*>(&batch.step);
    updating.steps.apply(table, batch.out.indices, given != nullptr ? **given : updating.built);
}

}  // namespace tensorhash::table
