// SGD, Adagrad, row-wise Adagrad and Adam on one row. Half weights are computed in float. Loops are
// plain, so that the compiler can vectorize them. Scalars are computed in double first, as torch
// does.
#include "table/steps.hpp"

#include <cmath>
#include <utility>

#include "tensor/powers.hpp"
#include "tensor/stored.hpp"

namespace tensorhash::table {
namespace {

/// Gradient plus decay. Without decay the weight is left out, because 0 * inf is NaN.
template <class T>
T decayed(T gradient, T weight, T decay) {
    return decay == T(0) ? gradient : gradient + decay * weight;
}

template <class Type>
RowStep typed(Sgd const& sgd, std::size_t n) {
    using T = typename Type::Computed;
    using Stored = typename Type::Stored;
    auto const lr = static_cast<T>(sgd.lr);
    auto const momentum = static_cast<T>(sgd.momentum);
    auto const decay = static_cast<T>(sgd.weight_decay);
    if (sgd.momentum == 0) {
        return [=](UpdateRow const& row) {
            Stored* __restrict const w = row.value<Stored>();
            Stored const* __restrict const g = row.gradient<Stored>();
            for (std::size_t i = 0; i < n; ++i) {
                T const weight = Type::load(w[i]);
                w[i] = Type::store(weight - lr * decayed(T(Type::load(g[i])), weight, decay));
            }
        };
    }
    T const ahead = sgd.nesterov ? momentum : T(0);
    return [=](UpdateRow const& row) {
        Stored* __restrict const w = row.value<Stored>();
        T* __restrict const buffer = row.value<T>(1);
        Stored const* __restrict const g = row.gradient<Stored>();
        for (std::size_t i = 0; i < n; ++i) {
            T const weight = Type::load(w[i]);
            T const gradient = decayed(T(Type::load(g[i])), weight, decay);
            buffer[i] = momentum * buffer[i] + gradient;
            T const step = ahead == T(0) ? buffer[i] : gradient + ahead * buffer[i];
            w[i] = Type::store(weight - lr * step);
        }
    };
}

/// The settings of either Adagrad, rounded to the type of the arithmetic.
template <class T>
struct AdagradSettings {
    T lr;
    T decay;
    T initial;
    T eps;
};
template <class T, class AnyAdagrad>
AdagradSettings<T> settings_of(AnyAdagrad const& adagrad) {
    return {static_cast<T>(adagrad.lr), static_cast<T>(adagrad.weight_decay),
            static_cast<T>(adagrad.initial_accumulator_value), static_cast<T>(adagrad.eps)};
}

template <class Type>
RowStep typed(Adagrad const& adagrad, std::size_t n) {
    using T = typename Type::Computed;
    using Stored = typename Type::Stored;
    auto const given = settings_of<T>(adagrad);
    return [=](UpdateRow const& row) {
        Stored* __restrict const w = row.value<Stored>();
        T* __restrict const sum = row.value<T>(1);
        Stored const* __restrict const g = row.gradient<Stored>();
        for (std::size_t i = 0; i < n; ++i) {
            T const weight = Type::load(w[i]);
            T const gradient = decayed(T(Type::load(g[i])), weight, given.decay);
            sum[i] += gradient * gradient;
            w[i] = Type::store(
                weight - given.lr * (gradient / (std::sqrt(given.initial + sum[i]) + given.eps)));
        }
    };
}

template <class Type>
RowStep typed(RowWiseAdagrad const& adagrad, std::size_t n) {
    using T = typename Type::Computed;
    using Stored = typename Type::Stored;
    auto const given = settings_of<T>(adagrad);
    return [=](UpdateRow const& row) {
        Stored* __restrict const w = row.value<Stored>();
        T* const sum = row.value<T>(1);
        Stored const* __restrict const g = row.gradient<Stored>();
        auto const gradient = [&](std::size_t i) {
            return decayed(T(Type::load(g[i])), T(Type::load(w[i])), given.decay);
        };
        *sum += mean_square<T>(n, gradient);
        T const rate = given.lr / (std::sqrt(given.initial + *sum) + given.eps);
        for (std::size_t i = 0; i < n; ++i) {
            w[i] = Type::store(Type::load(w[i]) - rate * gradient(i));
        }
    };
}

template <class Type>
RowStep typed(Adam const& adam, std::size_t n) {
    using T = typename Type::Computed;
    using Stored = typename Type::Stored;
    auto const beta2 = static_cast<T>(adam.beta2);
    // Subtracted in double: in float, 1 - 0.999 is wrong in the fifth digit.
    auto const rest1 = static_cast<T>(1 - adam.beta1);
    auto const rest2 = static_cast<T>(1 - adam.beta2);
    auto const eps = static_cast<T>(adam.eps);
    auto const decay = static_cast<T>(adam.decoupled_weight_decay ? 0 : adam.weight_decay);
    auto const keep =
        static_cast<T>(adam.decoupled_weight_decay ? 1 - adam.lr * adam.weight_decay : 1);
    return [=](UpdateRow const& row) {
        Stored* __restrict const w = row.value<Stored>();
        T* __restrict const first = row.value<T>(1);
        T* __restrict const second = row.value<T>(2);
        Stored const* __restrict const g = row.gradient<Stored>();
        std::int64_t const count = ++*row.value<std::int64_t>(3);
        auto const step_size = static_cast<T>(adam.lr / (1 - integer_power(adam.beta1, count)));
        auto const root = static_cast<T>(std::sqrt(1 - integer_power(adam.beta2, count)));
        for (std::size_t i = 0; i < n; ++i) {
            T const weight = keep * Type::load(w[i]);
            T const gradient = decayed(T(Type::load(g[i])), weight, decay);
            first[i] += (gradient - first[i]) * rest1;
            second[i] = beta2 * second[i] + rest2 * gradient * gradient;
            w[i] =
                Type::store(weight - step_size * (first[i] / (std::sqrt(second[i]) / root + eps)));
        }
    };
}

}  // namespace

RowStep make_step(Optimizer const& optimizer, Element const& weights) {
    auto const elements = static_cast<std::size_t>(num_elements(weights.shape));
    return std::visit(
        [&](auto const& one) -> RowStep {
            switch (weights.dtype) {
                case Dtype::Float16:
                    return typed<Half>(one, elements);
                case Dtype::BFloat16:
                    return typed<BrainHalf>(one, elements);
                case Dtype::Float32:
                    return typed<Plain<float>>(one, elements);
                default:
                    return typed<Plain<double>>(one, elements);
            }
        },
        optimizer);
}

}  // namespace tensorhash::table
