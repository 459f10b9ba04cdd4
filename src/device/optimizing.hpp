// Picks the body of an optimizer's step, by optimizer and by the dtype of the weights.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "device/column.hpp"
#include "device/joining.hpp"
#include "device/row_wise.hpp"
#include "device/update.hpp"

namespace tensorhash::device {

/// The gradients of a batch, with its rows sorted by entry.
struct Gradients {
    backend::Bytes data;
    std::uint32_t const* indices;
    std::uint32_t const* sorted_rows;
    std::uint32_t rows;
    bool sums;
};

template <class Type, class Step, class Queue>
void make_steps(Queue& queue, std::vector<Column<Queue>> const& columns, std::uint32_t elements,
                Gradients const& given, Step const& step) {
    using Stored = typename Type::Stored;
    using T = typename Type::Computed;
    auto const state = [&](std::size_t i) {
        return i < columns.size() ? reinterpret_cast<T*>(columns[i].data()) : nullptr;
    };
    auto* const counts =
        columns.size() > 3 ? reinterpret_cast<std::int64_t*>(columns[3].data()) : nullptr;
    OptimizerColumns<Type> const all{reinterpret_cast<Stored*>(columns[0].data()), state(1),
                                     state(2), counts};
    queue.launch(
        std::uint64_t{given.rows} * elements,
        StepInOrder<Type, Step>{all, reinterpret_cast<Stored const*>(given.data), given.indices,
                                given.sorted_rows, given.rows, elements, given.sums, step});
    if (counts != nullptr) {
        queue.launch(given.rows, CountSteps{counts, given.indices, given.rows, given.sums});
    }
}

template <class Type, class Queue>
void make_steps(Queue& queue, std::vector<Column<Queue>> const& columns, std::uint32_t elements,
                Gradients const& given, RowWiseAdagrad const& adagrad) {
    using Stored = typename Type::Stored;
    queue.launch(given.rows,
                 RowWiseInOrder<Type>(adagrad, reinterpret_cast<Stored*>(columns[0].data()),
                                      reinterpret_cast<typename Type::Computed*>(columns[1].data()),
                                      {reinterpret_cast<Stored const*>(given.data), given.indices,
                                       given.sorted_rows, given.rows, elements, given.sums}));
}

template <class Type, class Queue>
void make_steps(Queue& queue, std::vector<Column<Queue>> const& columns, std::uint32_t elements,
                Gradients const& given, Optimizer const& optimizer) {
    using T = typename Type::Computed;
    if (auto const* const sgd = std::get_if<Sgd>(&optimizer)) {
        make_steps<Type>(queue, columns, elements, given, SgdStep<T>(*sgd));
    } else if (auto const* const adagrad = std::get_if<Adagrad>(&optimizer)) {
        make_steps<Type>(queue, columns, elements, given, AdagradStep<T>(*adagrad));
    } else if (auto const* const row_wise = std::get_if<RowWiseAdagrad>(&optimizer)) {
        make_steps<Type>(queue, columns, elements, given, *row_wise);
    } else if (auto const* const adam = std::get_if<Adam>(&optimizer)) {
        make_steps<Type>(queue, columns, elements, given, AdamStep<T>(*adam));
    }
}

/// The columns are those of optimizer_columns(), weights first.
template <class Queue>
void make_steps(Queue& queue, std::vector<Column<Queue>> const& columns, Element const& weights,
                Gradients const& given, Optimizer const& optimizer) {
    auto const elements = static_cast<std::uint32_t>(num_elements(weights.shape));
    switch (weights.dtype) {
        case Dtype::Float16:
            return make_steps<Half>(queue, columns, elements, given, optimizer);
        case Dtype::BFloat16:
            return make_steps<BrainHalf>(queue, columns, elements, given, optimizer);
        case Dtype::Float32:
            return make_steps<Plain<float>>(queue, columns, elements, given, optimizer);
        default:
            return make_steps<Plain<double>>(queue, columns, elements, given, optimizer);
    }
}

}  // namespace tensorhash::device
