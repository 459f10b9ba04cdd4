// Insert into a bounded table: a plain insert if everything fits, otherwise plan, then apply.
#include "table/bounded_batch.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "runtime/parallel.hpp"
#include "table/reduce.hpp"
#include "table/row_order.hpp"
#include "table/rows.hpp"
#include "tensor/shapes.hpp"
#include "tensorhash/error.hpp"
#include "tensorhash/step/platform.hpp"

namespace tensorhash::table {

std::vector<Element> with_hidden(std::vector<Element> values) {
    values.push_back(kScore);
    values.push_back(kUse);
    return values;
}

std::vector<Reduce> with_hidden(std::vector<Reduce> const& reduce, std::size_t columns) {
    std::vector<Reduce> all = reduce.size() == 1 ? std::vector<Reduce>(columns, reduce[0]) : reduce;
    all.insert(all.end(), 2, Reduce::Last);
    return all;
}

UsedRows::UsedRows(Ledger const& ledger, std::size_t rows, Bytes scores)
    : scores_(rows * sizeof(std::int64_t)), uses_(rows * sizeof(std::uint64_t)),
      lowest_(std::numeric_limits<std::int64_t>::max()) {
    auto* const use = reinterpret_cast<std::uint64_t*>(uses_.data());
    auto* const score = reinterpret_cast<std::int64_t*>(scores_.data());
    if (scores != nullptr) {
        runtime::copy_bytes(scores_.data(), scores, rows * sizeof(std::int64_t));
    } else {
        std::fill(score, score + rows, static_cast<std::int64_t>(ledger.clock + 1));
    }
    for (std::size_t row = 0; row < rows; ++row) {
        use[row] = ledger.uses + row;
        lowest_ = std::min(lowest_, score[row]);
    }
}

namespace {

/// The distinct keys of a batch that does not fit; nothing if there is room for all new keys.
std::optional<Distinct> distinct_if_full(BoundedState const& state, BoundedBatch const& batch,
                                         Bytes keys, std::uint64_t room) {
    Distinct distinct;
    distinct.of_row.resize(batch.rows);
    runtime::Block mask(batch.rows);
    auto const missing = [&](std::size_t rows) {
        return static_cast<std::uint64_t>(std::count(mask.data(), mask.data() + rows, 0));
    };
    // Most keys of a batch are often present: look them up before counting distinct keys.
    state.table.find(keys, batch.rows, {distinct.of_row.data(), mask.data()});
    if (missing(batch.rows) <= room) {
        return std::nullopt;
    }
    Table set(batch.key, {}, 0);
    set.activate(keys, batch.rows, {distinct.of_row.data(), mask.data()}, KeySource::Private);
    distinct.where.resize(set.size());
    state.table.find(set.keys().block->data(), set.size(), {distinct.where.data(), mask.data()});
    if (missing(set.size()) <= room) {
        return std::nullopt;
    }
    return distinct;
}

/// Output rows for evicted entries, `bytes` each. Null `to`: not wanted.
struct LeavingRows {
    unsigned char* to;
    std::size_t bytes;
    std::uint32_t const* place;
    unsigned char* row(std::size_t i) const noexcept {
        return to + (place == nullptr ? i : place[i]) * bytes;
    }
};

/// Copies the evicted keys from the table, which still has them, or from the batch.
void copy_leaving_keys(LeavingRows const& out, EvictionPlan const& plan, Table const& table,
                       Bytes keys) {
    for (std::size_t i = 0; i < plan.leaving.size(); ++i) {
        Leaving const& one = plan.leaving[i];
        Bytes const from = one.key_row == kNoRow ? table.keys().row(one.buf_index)
                                                 : keys + one.key_row * out.bytes;
        std::memcpy(out.row(i), from, out.bytes);
    }
}

/// Applies the plan to one column: copies evicted rows to `out`, writes or joins the batch's rows.
void replay(EvictionPlan const& plan, Column& column, Bytes from, std::uint32_t const* order,
            Join const& join, LeavingRows const& out) {
    std::size_t const rows = plan.buf_indices.size();
    std::size_t const bytes = column.row_bytes;
    in_row_order(
        row_order_parts(rows), rows, plan.buf_indices.data(),
        [&](std::size_t row) {
            if (plan.buf_indices[row] != kNotFound) {
                step::prefetch_for_write(column.row(plan.buf_indices[row]));
            }
        },
        [&](std::size_t, std::size_t row) {
            std::uint32_t const buf_index = plan.buf_indices[row];
            Bytes const given = from + (order == nullptr ? row : order[row]) * bytes;
            if (plan.leaves[row] != kNoEviction && out.to != nullptr) {
                std::memcpy(out.row(plan.leaves[row]),
                            buf_index == kNotFound ? given : column.row(buf_index), bytes);
            }
            if (buf_index == kNotFound) {
                return;
            }
            if (plan.added[row] != 0) {
                std::memcpy(column.row(buf_index), given, bytes);
            } else {
                join(column.row(buf_index), given);
            }
        });
}

/// Plans a batch that evicts, from its distinct keys, and prepares the change of the table.
void prepare_evicting(BoundedState const& state, BoundedBatch const& batch,
                      BoundedInsertion& insertion) {
    Ledger& ledger = state.ledger;
    ledger.visits.resize(state.table.capacity());
    insertion.plan =
        plan_batch({batch.rows, insertion.distinct.of_row.data(), batch.used.score_values(),
                    ledger.uses, batch.order},
                   {state.table, state.scores(), state.last_uses(), ledger.victims, ledger.visits},
                   insertion.distinct.where);
    EvictionPlan const& plan = *insertion.plan;
    for (std::size_t i = 0; i < batch.elements.size(); ++i) {
        insertion.joins.emplace_back(batch.elements[i], batch.reduce[i]);
    }
    std::size_t const key_bytes = state.table.keys().row_bytes;
    insertion.arriving = runtime::Block(plan.arriving.size() * key_bytes);
    gather_rows(insertion.arriving.data(), insertion.keys.data(), key_bytes, plan.arriving.data(),
                plan.arriving.size());
    insertion.replacing =
        state.table.prepare_replace(plan.replaced, insertion.arriving.data(), plan.arriving.size());
}

void finish_evicting(BoundedState const& state, BoundedBatch const& batch,
                     BoundedInsertion& insertion, Answers out, Evicted& evicted,
                     std::uint32_t const* place) noexcept {
    EvictionPlan const& plan = *insertion.plan;
    auto const leaving = [&](Tensor* rows, std::size_t bytes) {
        return LeavingRows{rows == nullptr ? nullptr : static_cast<unsigned char*>(rows->data()),
                           bytes, place};
    };
    copy_leaving_keys(leaving(&evicted.keys, state.table.keys().row_bytes), plan, state.table,
                      insertion.keys.data());
    state.table.finish_replace(std::move(insertion.replacing));
    std::size_t const columns = batch.elements.size() - 2;
    for (std::size_t i = 0; i < batch.elements.size(); ++i) {
        Column& column = state.table.raw_values()[i];
        Tensor* const gone = i < columns    ? &evicted.values[i]
                             : i == columns ? &evicted.scores
                                            : nullptr;
        replay(plan, column, batch.values[i], batch.order, insertion.joins[i],
               leaving(gone, column.row_bytes));
    }
    for (std::size_t row = 0; row < batch.rows; ++row) {
        out.indices[row] = insertion.distinct.where[insertion.distinct.of_row[row]];
        out.mask[row] = plan.added[row];
    }
}

}  // namespace

Evicted make_evicted(Element const& key, std::vector<Element> const& elements, std::size_t rows) {
    Evicted out;
    out.keys = Tensor::empty(with_rows(rows, key.shape), key.dtype);
    for (std::size_t i = 0; i + 2 < elements.size(); ++i) {
        out.values.push_back(Tensor::empty(with_rows(rows, elements[i].shape), elements[i].dtype));
    }
    out.scores = Tensor::empty(with_rows(rows, {}), Dtype::Int64);
    return out;
}

BoundedInsertion prepare_insert(BoundedState const& state, BoundedBatch const& batch, Answers out) {
    BoundedInsertion insertion;
    std::uint64_t const room = state.table.capacity() - state.table.size();
    if (batch.rows <= room) {
        insertion.fitting = state.table.prepare_insert(batch.keys, batch.rows, out);
        return insertion;
    }
    // A copy: plan and insert must see the same keys even if the caller's array changes.
    insertion.keys = runtime::Block(batch.rows * state.table.keys().row_bytes);
    state.table.copy_keys(insertion.keys.data(), batch.keys, batch.rows);
    std::optional<Distinct> distinct = distinct_if_full(state, batch, insertion.keys.data(), room);
    if (!distinct) {
        insertion.fitting =
            state.table.prepare_insert(insertion.keys.data(), batch.rows, out, KeySource::Private);
        return insertion;
    }
    insertion.distinct = std::move(*distinct);
    try {
        prepare_evicting(state, batch, insertion);
    } catch (...) {
        state.ledger.victims.forget();  // planning removed some
        throw;
    }
    return insertion;
}

void cancel(BoundedState const& state, BoundedInsertion& insertion) noexcept {
    if (insertion.fitting) {
        state.table.cancel(*insertion.fitting);
    } else {
        state.table.cancel(insertion.replacing);
        state.ledger.victims.forget();
    }
}

void finish_insert(BoundedState const& state, BoundedBatch const& batch,
                   BoundedInsertion&& insertion, Answers out, Evicted& evicted,
                   std::uint32_t const* place) noexcept {
    if (insertion.fitting) {
        state.table.finish_accumulate(std::move(*insertion.fitting), {batch.values, batch.order},
                                      batch.reduce);
        state.ledger.victims.changed(batch.used.lowest_score());
    } else {
        finish_evicting(state, batch, insertion, out, evicted, place);
    }
}

void touch(BoundedState const& state, UsedRows const& used, std::uint32_t const* buf_indices,
           std::size_t rows, bool has_scores, std::uint32_t const* order) noexcept {
    bool const sets_scores = has_scores || state.ledger.eviction == Eviction::Lru;
    Column& scores = state.score_column();
    Column& uses = state.use_column();
    in_row_order(
        row_order_parts(rows), rows, buf_indices, [](std::size_t) {},
        [&](std::size_t, std::size_t row) {
            if (buf_indices[row] == kNotFound) {
                return;
            }
            std::size_t const at = order == nullptr ? row : order[row];
            std::memcpy(uses.row(buf_indices[row]), used.uses() + at * uses.row_bytes,
                        uses.row_bytes);
            if (sets_scores) {
                std::memcpy(scores.row(buf_indices[row]), used.scores() + at * scores.row_bytes,
                            scores.row_bytes);
            }
        });
    if (sets_scores) {
        state.ledger.victims.changed(used.lowest_score());
    } else {
        state.ledger.victims.forget();  // same scores, new uses: any of them may rank low
    }
}

void validate_uses(BoundedState const& state) {
    Ledger const& ledger = state.ledger;
    if (ledger.clock > kLastCount || ledger.uses > kLastCount) {
        throw CorruptTable("table: expected clock and uses of at most " +
                           std::to_string(kLastCount) + ", got " + std::to_string(ledger.clock) +
                           " and " + std::to_string(ledger.uses));
    }
    bool const by_use = ledger.eviction == Eviction::Lru;
    std::vector<std::pair<std::uint64_t, std::int64_t>> uses;  // with their scores
    for (std::uint32_t buf_index = 0; buf_index < state.table.top(); ++buf_index) {
        if ((state.table.live()[buf_index / 64] >> (buf_index % 64) & 1) == 0) {
            continue;
        }
        auto const [use, score] =
            uses.emplace_back(state.last_uses()[buf_index], state.scores()[buf_index]);
        bool const impossible =
            by_use && (score < 1 || static_cast<std::uint64_t>(score) > ledger.clock);
        if (use >= ledger.uses || ledger.clock == 0 || impossible) {
            throw CorruptTable("table: the entry at index " + std::to_string(buf_index) +
                               " has a last use before the first batch or in the future");
        }
    }
    std::sort(uses.begin(), uses.end());
    for (std::size_t i = 1; i < uses.size(); ++i) {
        if (uses[i - 1].first == uses[i].first) {
            throw CorruptTable("table: two entries have the same last use");
        }
        if (by_use && uses[i - 1].second > uses[i].second) {
            throw CorruptTable("table: scores and last uses are not in the same order");
        }
    }
}

MemoryUsage memory_of(BoundedState const& state) {
    MemoryUsage usage = state.table.memory_usage();
    std::size_t const hidden = state.table.capacity() * (kScore.bytes() + kUse.bytes());
    usage.values -= hidden;
    usage.bookkeeping += hidden + state.ledger.visits.capacity() * sizeof(EntryUse);
    return usage;
}

}  // namespace tensorhash::table
