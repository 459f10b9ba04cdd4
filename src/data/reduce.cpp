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

void add_rows(Fold const& fold, std::vector<Column> const& columns, NumberedRows const& rows,
              std::uint64_t* states) {
    FoldOps const& ops = fold.ops();
    std::array<std::uint64_t, cpu::kReadRows> room;
    for (std::size_t row = rows.begin; row < rows.end; row += cpu::kReadRows) {
        std::size_t const count = std::min(cpu::kReadRows, rows.end - row);
        std::uint64_t const* const values =
            fold.column == kNoColumn ? nullptr
                                     : widen(columns[fold.column], row, count, room.data());
        ops.add(states, {rows.numbers + (row - rows.begin), values, nullptr,
                         rows.first_row + static_cast<std::int64_t>(row), count});
    }
}

void add_numbered(Plan const& plan, std::vector<Column> const& columns,
                  std::uint32_t const* numbers, std::size_t rows, std::int64_t first_row,
                  States& states) {
    auto const add = [&](std::size_t which) {
        add_rows(plan.folds()[which], columns, {0, rows, numbers, first_row},
                 static_cast<std::uint64_t*>(states[which].data()));
    };
    std::size_t const folds = plan.folds().size();
    if (rows >= kSmallBatch) return runtime::run_tasks(folds, add);
    for (std::size_t which = 0; which < folds; ++which) add(which);
}

}  // namespace tensorhash::data
