// Folds over rows that are already numbered.
#include "data/reduce.hpp"

#include <algorithm>
#include <array>

#include "cpu/partition.hpp"
#include "runtime/parallel.hpp"
#include "tensor/shapes.hpp"

namespace tensorhash::data {

States new_states(Plan const& plan, std::size_t groups) {
    States states;
    for (Fold const& fold : plan.folds()) {
        FoldOps const& ops = fold.ops();
        states.push_back(Tensor::empty(with_rows(groups * ops.words, {}), Dtype::UInt64));
        auto* const words = static_cast<std::uint64_t*>(states.back().data());
        runtime::for_ranges(groups, runtime::kGrain, [&](std::size_t begin, std::size_t end) {
            ops.start(words, begin, end);
        });
    }
    return states;
}

namespace {

/// A batch with numbered rows.
struct NumberedBatch {
    Plan const& plan;
    std::vector<Column> const& columns;
    std::uint32_t const* numbers;
    std::int64_t first_row;
    States& states;

    /// Adds rows [begin, end) to one fold.
    void add(std::size_t which, std::size_t begin, std::size_t end) const {
        Fold const& fold = plan.folds()[which];
        FoldOps const& ops = fold.ops();
        auto* const words = static_cast<std::uint64_t*>(states[which].data());
        std::array<std::uint64_t, cpu::kReadRows> room;
        for (std::size_t row = begin; row < end; row += cpu::kReadRows) {
            std::size_t const count = std::min(cpu::kReadRows, end - row);
            std::uint64_t const* const values =
                fold.column == kNoColumn ? nullptr
                                         : widen(columns[fold.column], row, count, room.data());
            ops.add(words, {numbers + row, values, nullptr,
                            first_row + static_cast<std::int64_t>(row), count});
        }
    }
};

}  // namespace

void add_numbered(Plan const& plan, std::vector<Column> const& columns,
                  std::uint32_t const* numbers, std::size_t rows, std::int64_t first_row,
                  States& states) {
    NumberedBatch const batch{plan, columns, numbers, first_row, states};
    if (rows < kSmallBatch) {
        for (std::size_t which = 0; which < plan.folds().size(); ++which) batch.add(which, 0, rows);
        return;
    }
    runtime::run_tasks(plan.folds().size(), [&](std::size_t which) { batch.add(which, 0, rows); });
}

void add_numbered(Plan const& plan, std::vector<Column> const& columns, Numbering& numbering,
                  std::size_t rows, States& states) {
    std::vector<OwnNumbers> const& own = numbering.own;
    if (own.empty()) return add_numbered(plan, columns, numbering.of_rows(), rows, 0, states);
    std::size_t const numbered = own.front().begin;
    std::size_t const folds = plan.folds().size();
    NumberedBatch const batch{plan, columns, numbering.of_rows(), 0, states};
    // A fold adds its rows one after the other, so with few folds some threads have time.
    runtime::run_tasks(folds + own.size(), [&](std::size_t task) {
        if (task < folds) {
            batch.add(task, 0, numbered);
        } else {
            numbering.translate(own[task - folds]);
        }
    });
    runtime::run_tasks(folds, [&](std::size_t which) { batch.add(which, numbered, rows); });
    numbering.own.clear();
}

}  // namespace tensorhash::data
