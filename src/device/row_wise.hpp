// Row-wise Adagrad: one number of state per entry. One thread per entry takes its rows in row
// order, because each step needs all elements of a row. The formulas are those of
// src/table/steps.cpp, operation by operation, so results have the CPU's bits.
#pragma once

#include <cstdint>

#include "device/update.hpp"
#include "runtime/inlined.hpp"

namespace tensorhash::device {

/// The gradients of a batch, with its rows sorted by entry.
template <class Stored>
struct SortedGradients {
    Stored const* data;                // [rows, elements]
    std::uint32_t const* indices;      // [rows], ascending; -1 comes last
    std::uint32_t const* sorted_rows;  // [rows], ascending within an entry
    std::uint64_t rows;
    std::uint32_t elements;
    bool sums;  // one step per entry, with the sum of its gradients
};

template <class Type>
struct RowWiseInOrder {
    using Shared = NoShared;
    using T = typename Type::Computed;
    using Stored = typename Type::Stored;
    Stored* weights;  // [capacity, elements]
    T* sums;          // [capacity]
    SortedGradients<Stored> given;
    T lr;
    T decay;
    T initial;
    T eps;

    RowWiseInOrder(RowWiseAdagrad const& adagrad, Stored* weight_column, T* sum_column,
                   SortedGradients<Stored> const& gradients)
        : weights(weight_column), sums(sum_column), given(gradients),
          lr(static_cast<T>(adagrad.lr)), decay(static_cast<T>(adagrad.weight_decay)),
          initial(static_cast<T>(adagrad.initial_accumulator_value)),
          eps(static_cast<T>(adagrad.eps)) {}

    TH_STEP void operator()(NoShared&) const {
        for_rows(given.rows, [this](std::uint64_t first) TH_INLINED {
            std::uint32_t const index = given.indices[first];
            if (index == step::kNotFound || (first > 0 && given.indices[first - 1] == index)) {
                return;  // no entry, or one that an earlier thread has
            }
            if (given.sums) {
                take_step(index, [&](std::uint64_t i) TH_INLINED { return summed(first, i); });
                return;
            }
            for (std::uint64_t j = first; j < given.rows && given.indices[j] == index; ++j) {
                take_step(index, [&](std::uint64_t i) TH_INLINED { return gradient(j, i); });
            }
        });
    }

private:
    /// One step of an entry; raw(i) is the gradient of element i, as stored.
    template <class Raw>
    TH_STEP void take_step(std::uint32_t index, Raw const& raw) const {
        Stored* const w = weights + std::uint64_t{index} * given.elements;
        auto const decayed_gradient = [&](std::uint64_t i) TH_INLINED {
            return decayed(T(Type::load(raw(i))), T(Type::load(w[i])), decay);
        };
        T const sum = sums[index] + mean_square<T>(given.elements, decayed_gradient);
        sums[index] = sum;
        T const rate = lr / (square_root(initial + sum) + eps);
        for (std::uint64_t i = 0; i < given.elements; ++i) {
            w[i] = Type::store(Type::load(w[i]) - rate * decayed_gradient(i));
        }
    }
    TH_STEP Stored gradient(std::uint64_t j, std::uint64_t i) const {
        return given.data[std::uint64_t{given.sorted_rows[j]} * given.elements + i];
    }
    /// The sum of the gradients of one element, in row order.
    TH_STEP Stored summed(std::uint64_t first, std::uint64_t i) const {
        Stored sum = gradient(first, i);
        for (std::uint64_t j = first + 1;
             j < given.rows && given.indices[j] == given.indices[first]; ++j) {
            sum = Type::store(join_like_x86<JoinSum>(Type::load(sum), Type::load(gradient(j, i))));
        }
        return sum;
    }
};

}  // namespace tensorhash::device

#undef TH_INLINED
