// HashMap::update: finds or adds the keys, then steps their values.
#include "map/update.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "map/map_impl.hpp"
#include "map/results.hpp"
#include "runtime/parallel.hpp"
#include "table/row_order.hpp"
#include "table/steps.hpp"
#include "tensorhash/error.hpp"
#include "tensorhash/step/platform.hpp"

namespace tensorhash::table {

Steps::Steps(Table const& table, Element const& key, Batch const& keys, Element const& gradient,
             Batch const& gradients, Duplicates duplicates)
    : rows_(keys.rows), row_bytes_(gradient.bytes()), gradients_(gradients.data()),
      parts_(row_order_parts(rows_)), columns_(parts_ * table.values().size()),
      batch_rows_(keys.rows) {
    if (duplicates == Duplicates::InOrder) {
        return;
    }
    sums_.emplace(key, std::vector<Element>{gradient}, 0);
    sum_of_row_ = runtime::Block(rows_ * sizeof(std::uint32_t));
    runtime::Block mask(rows_);
    Bytes const from = gradients.data();
    Reduce const sum = Reduce::Sum;
    sums_->upsert(keys.data(), rows_, {&from, 1}, {&sum, 1},
                  {reinterpret_cast<std::uint32_t*>(sum_of_row_.data()), mask.data()});
    rows_ = sums_->size();
    gradients_ = sums_->values()[0].block->data();
    first_of_sum_ = runtime::Block(rows_ * sizeof(std::uint32_t));
}

void Steps::apply(Table& table, std::uint32_t const* numbers, RowStep const& step) noexcept {
    if (sums_) {
        auto const* const sum_of_row = reinterpret_cast<std::uint32_t const*>(sum_of_row_.data());
        auto* const first = reinterpret_cast<std::uint32_t*>(first_of_sum_.data());
        for (std::size_t row = 0; row < batch_rows_; ++row) {
            first[sum_of_row[row]] = numbers[row];  // the same for all rows of a key
        }
        numbers = first;
    }
    constexpr std::uint32_t kMissing = 0xffffffffu;
    std::vector<Column>& values = table.raw_values();
    std::size_t const count = values.size();
    in_row_order(
        parts_, rows_, numbers,
        [&](std::size_t row) {
            if (numbers[row] == kMissing) return;
            for (Column& column : values) {
                kernel::prefetch_for_write(column.row(numbers[row]));
            }
        },
        [&](std::size_t part, std::size_t row) noexcept {
            if (numbers[row] == kMissing) return;
            unsigned char** const columns = columns_.data() + part * count;
            for (std::size_t i = 0; i < count; ++i) {
                columns[i] = values[i].row(numbers[row]);
            }
            step(UpdateRow({columns, count}, gradients_ + row * row_bytes_));
        });
}

Batch check_gradients(Tensor const& gradients, Element const& element, std::size_t rows) {
    Batch batch = check_batch(gradients, element, "gradients");
    if (batch.rows != rows) {
        throw ValueError("gradients: expected " + std::to_string(rows) +
                         " rows, as many as keys, got " + std::to_string(batch.rows));
    }
    if (reinterpret_cast<std::uintptr_t>(batch.data()) % byte_size(element.dtype) != 0) {
        batch.tensor = batch.tensor.clone();
    }
    return batch;
}

void require_found(unsigned char const* mask, std::size_t rows, char const* otherwise) {
    auto const missing = static_cast<std::size_t>(std::count(mask, mask + rows, 0));
    if (missing > 0) {
        throw KeyError("keys: " + std::to_string(missing) +
                       " rows are not in the table, the first is row " +
                       std::to_string(std::find(mask, mask + rows, 0) - mask) +
                       "; insert them first, or set missing to " + otherwise);
    }
}

namespace {

/// The weights of the keys that were added: rows of the mask.
void write_initial(Column& weights, Fill const& initial, std::size_t rows, Answers const& where) {
    runtime::for_ranges(rows, runtime::kGrain, [&](std::size_t begin, std::size_t end) {
        for (std::size_t row = begin; row < end; ++row) {
            if (where.mask[row] != 0) {
                std::memcpy(weights.row(where.numbers[row]),
                            initial.batch.data() + row * initial.step, weights.row_bytes);
            }
        }
    });
}

}  // namespace

std::optional<Fill> check_initial(UpdateOptions const& options, std::vector<Element> const& columns,
                                  std::size_t rows) {
    if (options.initial.dtype() == Dtype::Undefined) {
        return std::nullopt;
    }
    if (options.missing != Missing::Insert) {
        throw ValueError("initial: weights for new keys, but missing is not \"insert\"");
    }
    if (columns.empty()) {
        throw ValueError("initial: this table has no value columns");
    }
    return check_fill(options.initial, columns[0], rows, "initial");
}

void settle_added(Table& table, std::optional<Fill> const& initial, std::size_t rows,
                  Answers const& where) noexcept {
    if (initial) {
        write_initial(table.raw_values()[0], *initial, rows, where);
    }
    std::transform(where.mask, where.mask + rows, where.mask,
                   [](unsigned char added) { return static_cast<unsigned char>(added ^ 1); });
}

}  // namespace tensorhash::table

namespace tensorhash {

Located HashMap::update(Tensor const& keys, Tensor const& gradients, Optimizer const& optimizer,
                        UpdateOptions const& options) {
    RowStep const step = table::make_step(optimizer, impl_->values);
    table::Batch const rows = table::check_batch(keys, impl_->key, "keys");
    table::Batch const checked = table::check_gradients(gradients, impl_->values[0], rows.rows);
    Tensor const shaped =
        checked.tensor.reshape(table::with_rows(rows.rows, impl_->values[0].shape));
    return update(rows.tensor, shaped, step, options);
}

Located HashMap::update(Tensor const& keys, Tensor const& gradients, RowStep const& step,
                        UpdateOptions const& options) {
    if (!step) {
        throw ValueError("step: expected a function, got an empty one");
    }
    table::Batch key_batch = table::check_batch(keys, impl_->key, "keys");
    Element const element = table::element_of(gradients, "gradients");
    table::check_value_element(element, 0);
    table::Batch gradient_batch = table::check_gradients(gradients, element, key_batch.rows);
    std::optional<table::Fill> initial =
        table::check_initial(options, impl_->values, key_batch.rows);
    Located located = table::make_located(key_batch.rows);
    table::Answers const out = table::answers(located);

    table::Writing const guard(impl_->lock);
    table::Table& table = impl_->table;
    table::detach_from(table, key_batch);
    table::detach_from(table, gradient_batch);
    if (initial) {
        table::detach_from(table, initial->batch);
    }
    table::Steps steps(table, impl_->key, key_batch, element, gradient_batch, options.duplicates);
    if (options.missing == Missing::Insert) {
        table.activate(key_batch.data(), key_batch.rows, out);
        table::settle_added(table, initial, key_batch.rows, out);
    } else {
        table.find(key_batch.data(), key_batch.rows, out);
        if (options.missing == Missing::Error) {
            table::require_found(out.mask, key_batch.rows);
        }
    }
    steps.apply(table, out.numbers, step);
    return located;
}

}  // namespace tensorhash
