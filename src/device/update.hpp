// Bodies of optimizer steps. Rows are sorted by entry, and one thread per element takes the rows of
// its entry in row order. The formulas are those of src/table/steps.cpp, operation by operation, so
// results have the CPU's bits.
#pragma once

#include <cstdint>

#include "device/counters.hpp"
#include "device/reduce.hpp"
#include "tensor/powers.hpp"
#include "tensorhash/optimizer.hpp"

namespace tensorhash::device {

/// One element of an entry: its weight, and what the optimizer keeps for it.
template <class T>
struct Weight {
    T value;
    T first;             // momentum, sum of squares or first moment
    T second;            // second moment
    std::int64_t steps;  // that this entry has made, this one included
};

/// Gradient plus decay. Without decay the weight is left out, because 0 * inf is NaN.
template <class T>
TH_STEP T decayed(T gradient, T weight, T decay) {
    return decay == T(0) ? gradient : gradient + decay * weight;
}

template <class T>
struct SgdStep {
    T lr;
    T momentum;
    T decay;
    T ahead;  // Nesterov's momentum; 0: none

    explicit SgdStep(Sgd const& sgd)
        : lr(static_cast<T>(sgd.lr)), momentum(static_cast<T>(sgd.momentum)),
          decay(static_cast<T>(sgd.weight_decay)), ahead(sgd.nesterov ? momentum : T(0)) {}

    TH_STEP void operator()(Weight<T>& w, T raw_gradient) const {
        T const gradient = decayed(raw_gradient, w.value, decay);
        if (momentum == T(0)) {
            w.value = w.value - lr * gradient;
            return;
        }
        w.first = momentum * w.first + gradient;
        T const step = ahead == T(0) ? w.first : gradient + ahead * w.first;
        w.value = w.value - lr * step;
    }
};

template <class T>
struct AdagradStep {
    T lr;
    T decay;
    T initial;
    T eps;

    explicit AdagradStep(Adagrad const& adagrad)
        : lr(static_cast<T>(adagrad.lr)), decay(static_cast<T>(adagrad.weight_decay)),
          initial(static_cast<T>(adagrad.initial_accumulator_value)),
          eps(static_cast<T>(adagrad.eps)) {}

    TH_STEP void operator()(Weight<T>& w, T raw_gradient) const {
        T const gradient = decayed(raw_gradient, w.value, decay);
        w.first += gradient * gradient;
        w.value = w.value - lr * (gradient / (square_root(initial + w.first) + eps));
    }
};

template <class T>
struct AdamStep {
    double lr;
    double beta1;
    double beta2;
    T beta2_rounded;
    T rest1;
    T rest2;
    T eps;
    T decay;
    T keep;

    explicit AdamStep(Adam const& adam)
        : lr(adam.lr), beta1(adam.beta1), beta2(adam.beta2),
          beta2_rounded(static_cast<T>(adam.beta2)), rest1(static_cast<T>(1 - adam.beta1)),
          rest2(static_cast<T>(1 - adam.beta2)), eps(static_cast<T>(adam.eps)),
          decay(static_cast<T>(adam.decoupled_weight_decay ? 0 : adam.weight_decay)),
          keep(static_cast<T>(adam.decoupled_weight_decay ? 1 - adam.lr * adam.weight_decay : 1)) {}

    TH_STEP void operator()(Weight<T>& w, T raw_gradient) const {
        auto const step_size = static_cast<T>(lr / (1 - integer_power(beta1, w.steps)));
        auto const root = static_cast<T>(square_root(1 - integer_power(beta2, w.steps)));
        T const weight = keep * w.value;
        T const gradient = decayed(raw_gradient, weight, decay);
        w.first += (gradient - w.first) * rest1;
        w.second = beta2_rounded * w.second + rest2 * gradient * gradient;
        w.value = weight - step_size * (w.first / (square_root(w.second) / root + eps));
    }
};

/// The columns of a table with an optimizer. State columns that it does not have are null.
template <class Type>
struct OptimizerColumns {
    typename Type::Stored* weights;
    typename Type::Computed* first;
    typename Type::Computed* second;
    std::int64_t const* steps;
};

/// Makes the steps of all entries. With `sums`, the gradients of an entry are added first.
template <class Type, class Step>
struct StepInOrder {
    using Shared = NoShared;
    using T = typename Type::Computed;
    OptimizerColumns<Type> columns;
    typename Type::Stored const* gradients;  // [rows, elements]
    std::uint32_t const* indices;            // [rows], ascending; -1 comes last
    std::uint32_t const* sorted_rows;        // [rows], ascending within an entry
    std::uint64_t rows;
    std::uint32_t elements;
    bool sums;
    Step step;

    TH_STEP void operator()(NoShared&) const {
        for_rows(rows * elements, [&](std::uint64_t i) {
            std::uint64_t const first = i / elements;
            auto const element = static_cast<std::uint32_t>(i % elements);
            std::uint32_t const index = indices[first];
            if (index == step::kNotFound || (first > 0 && indices[first - 1] == index)) {
                return;  // no entry, or one that an earlier thread has
            }
            std::uint64_t const at = std::uint64_t{index} * elements + element;
            Weight<T> weight{Type::load(columns.weights[at]),
                             columns.first != nullptr ? columns.first[at] : T(0),
                             columns.second != nullptr ? columns.second[at] : T(0),
                             columns.steps != nullptr ? columns.steps[index] : 0};
            make_steps(weight, first, element);
            columns.weights[at] = Type::store(weight.value);
            if (columns.first != nullptr) {
                columns.first[at] = weight.first;
            }
            if (columns.second != nullptr) {
                columns.second[at] = weight.second;
            }
        });
    }

private:
    TH_STEP void make_steps(Weight<T>& weight, std::uint64_t first, std::uint32_t element) const {
        std::uint32_t const index = indices[first];
        auto sum = gradient(first, element);
        for (std::uint64_t j = first; j < rows && indices[j] == index; ++j) {
            if (!sums) {
                take(weight, Type::load(gradient(j, element)));
            } else if (j > first) {
                sum = Type::store(
                    join_like_x86<JoinSum>(Type::load(sum), Type::load(gradient(j, element))));
            }
        }
        if (sums) {
            take(weight, Type::load(sum));
        }
    }
    /// Half weights round after every step, as in memory.
    TH_STEP void take(Weight<T>& weight, T one) const {
        ++weight.steps;
        step(weight, one);
        weight.value = Type::load(Type::store(weight.value));
    }
    TH_STEP typename Type::Stored gradient(std::uint64_t j, std::uint32_t element) const {
        return gradients[std::uint64_t{sorted_rows[j]} * elements + element];
    }
};

/// Counts the steps of each entry, after they were made. With `sums`, one per entry.
struct CountSteps {
    using Shared = NoShared;
    std::int64_t* steps;           // [capacity]
    std::uint32_t const* indices;  // [rows], ascending
    std::uint64_t rows;
    bool sums;

    TH_STEP void operator()(NoShared&) const {
        for_rows(rows, [&](std::uint64_t row) {
            std::uint32_t const index = indices[row];
            bool const repeats = row > 0 && indices[row - 1] == index;
            if (index != step::kNotFound && !(sums && repeats)) {
                fetch_add(reinterpret_cast<std::uint64_t*>(&steps[index]), std::uint64_t{1});
            }
        });
    }
};

}  // namespace tensorhash::device
