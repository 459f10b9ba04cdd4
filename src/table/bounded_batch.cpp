// Batches on a bounded table: straight into the table if all fits, else planned, then carried out.
#include "table/bounded_batch.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <string>

#include "io/bounded_format.hpp"
#include "runtime/parallel.hpp"
#include "table/reduce.hpp"
#include "table/results.hpp"
#include "table/row_order.hpp"
#include "table/rows.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::table {

UsedRows::UsedRows(BoundedState const& state, std::size_t rows, Batch const* scores)
    : scores_(rows * sizeof(std::int64_t)), uses_(rows * sizeof(std::uint64_t)),
      lowest_(std::numeric_limits<std::int64_t>::max()) {
    auto* const use = reinterpret_cast<std::uint64_t*>(uses_.data());
    auto* const score = reinterpret_cast<std::int64_t*>(scores_.data());
    if (scores != nullptr) {
        runtime::copy_bytes(scores_.data(), scores->data(), scores_.bytes());
    } else {
        std::fill(score, score + rows, static_cast<std::int64_t>(state.clock + 1));
    }
    for (std::size_t row = 0; row < rows; ++row) {
        use[row] = state.uses + row;
        lowest_ = std::min(lowest_, score[row]);
    }
}

namespace {

void end_batch(BoundedState& state, std::size_t rows) noexcept {
    ++state.clock;
    state.uses += rows;
}

/// The distinct keys of a batch.
struct Distinct {
    std::vector<std::uint32_t> of_row;  // [rows]
    std::vector<std::uint32_t> where;   // [distinct]: their numbers in the table
};

/// Nothing if the table has room for whatever is new in the batch.
std::optional<Distinct> too_many(BoundedState const& state, Element const& key, Batch const& keys) {
    std::uint64_t const room = state.table.capacity() - state.table.size();
    if (keys.rows <= room) {
        return std::nullopt;
    }
    Distinct distinct;
    distinct.of_row.resize(keys.rows);
    runtime::Block mask(keys.rows);
    auto const missing = [&](std::size_t rows) {
        return static_cast<std::uint64_t>(std::count(mask.data(), mask.data() + rows, 0));
    };
    // Most keys of a batch are often there: look before sorting out which of the others are equal.
    state.table.find(keys.data(), keys.rows, {distinct.of_row.data(), mask.data()});
    if (missing(keys.rows) <= room) {
        return std::nullopt;
    }
    Table set(key, {}, 0);
    set.activate(keys.data(), keys.rows, {distinct.of_row.data(), mask.data()});
    distinct.where.resize(set.size());
    state.table.find(set.keys().block->data(), set.size(), {distinct.where.data(), mask.data()});
    if (missing(set.size()) <= room) {
        return std::nullopt;
    }
    return distinct;
}

Evicted make_evicted(Element const& key, std::vector<Element> const& elements, std::size_t rows) {
    Evicted out;
    out.keys = Tensor::empty(with_rows(rows, key.shape), key.dtype);
    for (std::size_t i = 0; i + 2 < elements.size(); ++i) {
        out.values.push_back(Tensor::empty(with_rows(rows, elements[i].shape), elements[i].dtype));
    }
    out.scores = Tensor::empty(with_rows(rows, {}), Dtype::Int64);
    return out;
}

/// The keys that leave: from the table, which still has them, or from the batch.
void copy_leaving_keys(unsigned char* to, Plan const& plan, Table const& table, Batch const& keys) {
    std::size_t const bytes = table.keys().row_bytes;
    for (std::size_t i = 0; i < plan.leaving.size(); ++i) {
        Leaving const& one = plan.leaving[i];
        Bytes const from =
            one.key_row == kNone ? table.keys().row(one.number) : keys.data() + one.key_row * bytes;
        std::memcpy(to + i * bytes, from, bytes);
    }
}

/// Carries out the plan on one column: what leaves is copied to `out` (unless null), rows are written or joined.
void replay(Plan const& plan, Column& column, Bytes from, Join const& join, unsigned char* out) {
    std::size_t const rows = plan.numbers.size();
    std::size_t const bytes = column.row_bytes;
    in_row_order(
        row_order_parts(rows), rows, plan.numbers.data(),
        [&](std::size_t row) {
            if (plan.numbers[row] != kNone) {
                __builtin_prefetch(column.row(plan.numbers[row]), 1);
            }
        },
        [&](std::size_t, std::size_t row) {
            std::uint32_t const number = plan.numbers[row];
            Bytes const given = from + row * bytes;
            if (plan.leaves[row] != kNone && out != nullptr) {
                std::memcpy(out + plan.leaves[row] * bytes,
                            number == kNone ? given : column.row(number), bytes);
            }
            if (number == kNone) {
                return;
            }
            if (plan.added[row] != 0) {
                std::memcpy(column.row(number), given, bytes);
            } else {
                join(column.row(number), given);
            }
        });
}

Admitted admit_evicting(BoundedState& state, Element const& key,
                        std::vector<Element> const& elements, Batch const& keys,
                        std::vector<Bytes> const& values, std::vector<Reduce> const& reduce,
                        UsedRows const& used, Distinct& distinct) {
    state.visits.resize(state.table.capacity());
    Plan const plan =
        plan_batch({keys.rows, distinct.of_row.data(), used.score_numbers(), state.uses},
                   {state.table, state.scores(), state.last_uses(), state.victims, state.visits},
                   distinct.where);
    Located located = make_located(keys.rows);
    Admitted out{located.indices, located.mask, make_evicted(key, elements, plan.leaving.size())};
    copy_leaving_keys(static_cast<unsigned char*>(out.evicted.keys.data()), plan, state.table,
                      keys);
    std::size_t const key_bytes = state.table.keys().row_bytes;
    runtime::Block arriving(plan.arriving.size() * key_bytes);
    gather_rows(arriving.data(), keys.data(), key_bytes, plan.arriving.data(),
                plan.arriving.size());
    std::vector<Join> joins;
    for (std::size_t i = 0; i < elements.size(); ++i) {
        joins.emplace_back(elements[i], reduce[i]);
    }
    state.table.replace(plan.replaced, arriving.data(), plan.arriving.size());

    // From here on nothing fails.
    std::size_t const columns = elements.size() - 2;
    for (std::size_t i = 0; i < elements.size(); ++i) {
        Tensor* const gone = i < columns    ? &out.evicted.values[i]
                             : i == columns ? &out.evicted.scores
                                            : nullptr;
        replay(plan, state.table.raw_values()[i], values[i], joins[i],
               gone == nullptr ? nullptr : static_cast<unsigned char*>(gone->data()));
    }
    Answers const where = answers(located);
    for (std::size_t row = 0; row < keys.rows; ++row) {
        where.numbers[row] = distinct.where[distinct.of_row[row]];
        where.mask[row] = plan.added[row];
    }
    return out;
}

}  // namespace

Admitted admit(BoundedState& state, Element const& key, std::vector<Element> const& elements,
               Batch const& keys, std::vector<Bytes> const& values,
               std::vector<Reduce> const& reduce, UsedRows const& used) {
    if (std::optional<Distinct> distinct = too_many(state, key, keys)) {
        try {
            Admitted out =
                admit_evicting(state, key, elements, keys, values, reduce, used, *distinct);
            end_batch(state, keys.rows);
            return out;
        } catch (...) {
            state.victims.forget();  // planning took some out
            throw;
        }
    }
    Located located = make_located(keys.rows);
    Admitted out{located.indices, located.mask, make_evicted(key, elements, 0)};
    state.table.upsert(keys.data(), keys.rows, values, reduce, answers(located));
    state.victims.changed(used.lowest_score());
    end_batch(state, keys.rows);
    return out;
}

void touch(BoundedState& state, UsedRows const& used, std::uint32_t const* numbers,
           std::size_t rows, bool has_scores) noexcept {
    bool const sets_scores = has_scores || state.eviction == Eviction::Lru;
    Column& scores = state.score_column();
    Column& uses = state.use_column();
    in_row_order(
        row_order_parts(rows), rows, numbers, [](std::size_t) {},
        [&](std::size_t, std::size_t row) {
            if (numbers[row] == kNone) {
                return;
            }
            std::memcpy(uses.row(numbers[row]), used.uses() + row * uses.row_bytes, uses.row_bytes);
            if (sets_scores) {
                std::memcpy(scores.row(numbers[row]), used.scores() + row * scores.row_bytes,
                            scores.row_bytes);
            }
        });
    if (sets_scores) {
        state.victims.changed(used.lowest_score());
    } else {
        state.victims.forget();  // old scores, new uses: any of them may rank low
    }
    end_batch(state, rows);
}

void validate_uses(BoundedState const& state) {
    std::vector<std::uint64_t> uses;
    for (std::uint32_t number = 0; number < state.table.top(); ++number) {
        if ((state.table.live()[number / 64] >> (number % 64) & 1) == 0) {
            continue;
        }
        uses.push_back(state.last_uses()[number]);
        bool const late = state.eviction == Eviction::Lru &&
                          static_cast<std::uint64_t>(state.scores()[number]) > state.clock;
        if (uses.back() >= state.uses || late) {
            throw CorruptTable("table: the entry at index " + std::to_string(number) +
                               " was used in the future");
        }
    }
    std::sort(uses.begin(), uses.end());
    if (std::adjacent_find(uses.begin(), uses.end()) != uses.end()) {
        throw CorruptTable("table: two entries have the same last use");
    }
}

void write_bounded(io::Sink& sink, Element const& key, std::vector<Element> const& elements,
                   BoundedState const& state) {
    io::write_head(sink, {state.eviction, state.clock, state.uses});
    io::write_table(sink, key, elements, state.table);
}

}  // namespace tensorhash::table
