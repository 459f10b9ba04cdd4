// SGD, Adagrad and Adam on one row. Half weights are computed in float; loops are plain, so that the compiler makes
// vectors of them. Scalars are computed in double first, as torch does.
#include "table/steps.hpp"

#include <cmath>
#include <string>
#include <utility>

#include "table/power.hpp"
#include "tensor/stored.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::table {
namespace {

void require(bool holds, std::string const& name, std::string const& expected, double got) {
    if (!holds) {
        throw ValueError("optimizer: " + name + ": expected " + expected + ", got " +
                         std::to_string(got));
    }
}

void require_not_negative(char const* name, double value) {
    require(std::isfinite(value) && value >= 0, name, "a finite number of at least 0", value);
}

void check(Sgd const& sgd) {
    require_not_negative("lr", sgd.lr);
    require_not_negative("momentum", sgd.momentum);
    require_not_negative("weight_decay", sgd.weight_decay);
    require(!sgd.nesterov || sgd.momentum > 0, "momentum", "more than 0 with nesterov",
            sgd.momentum);
}

void check(Adagrad const& adagrad) {
    require_not_negative("lr", adagrad.lr);
    require_not_negative("weight_decay", adagrad.weight_decay);
    require_not_negative("initial_accumulator_value", adagrad.initial_accumulator_value);
    require_not_negative("eps", adagrad.eps);
}

void check(Adam const& adam) {
    require_not_negative("lr", adam.lr);
    require(adam.beta1 >= 0 && adam.beta1 < 1, "beta1", "0 <= beta1 < 1", adam.beta1);
    require(adam.beta2 >= 0 && adam.beta2 < 1, "beta2", "0 <= beta2 < 1", adam.beta2);
    require_not_negative("eps", adam.eps);
    require_not_negative("weight_decay", adam.weight_decay);
}

struct Slots {
    char const* name;     // of the optimizer
    char const* columns;  // all of them, for messages
    std::size_t like_weights;
    bool counts_steps;
};

Slots slots_of(Sgd const& sgd) {
    return sgd.momentum > 0 ? Slots{"SGD with momentum", "weights, momentum", 1, false}
                            : Slots{"SGD", "weights", 0, false};
}
Slots slots_of(Adagrad const&) {
    return {"Adagrad", "weights, sum of squared gradients", 1, false};
}
Slots slots_of(Adam const&) {
    return {"Adam", "weights, first moment, second moment, step count", 2, true};
}

/// Gradient plus decay; without decay the weight is not looked at, since 0 * inf is no number.
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

template <class Type>
RowStep typed(Adagrad const& adagrad, std::size_t n) {
    using T = typename Type::Computed;
    using Stored = typename Type::Stored;
    auto const lr = static_cast<T>(adagrad.lr);
    auto const decay = static_cast<T>(adagrad.weight_decay);
    auto const initial = static_cast<T>(adagrad.initial_accumulator_value);
    auto const eps = static_cast<T>(adagrad.eps);
    return [=](UpdateRow const& row) {
        Stored* __restrict const w = row.value<Stored>();
        T* __restrict const sum = row.value<T>(1);
        Stored const* __restrict const g = row.gradient<Stored>();
        for (std::size_t i = 0; i < n; ++i) {
            T const weight = Type::load(w[i]);
            T const gradient = decayed(T(Type::load(g[i])), weight, decay);
            sum[i] += gradient * gradient;
            w[i] = Type::store(weight - lr * (gradient / (std::sqrt(initial + sum[i]) + eps)));
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

bool is_float(Dtype dtype) noexcept {
    return dtype == Dtype::Float16 || dtype == Dtype::BFloat16 || dtype == Dtype::Float32 ||
           dtype == Dtype::Float64;
}

}  // namespace

RowStep make_step(Optimizer const& optimizer, std::vector<Element> const& columns) {
    Slots const slots = std::visit([](auto const& one) { return slots_of(one); }, optimizer);
    std::string const made = "; make the table with the optimizer's columns";
    if (columns.empty()) {
        throw ValueError(std::string("optimizer: ") + slots.name + " needs value columns (" +
                         slots.columns + "), this table has none" + made);
    }
    std::vector<Element> const wanted = optimizer_columns(optimizer, columns[0]);
    if (columns.size() < wanted.size()) {
        throw ValueError(std::string("optimizer: ") + slots.name + " needs " +
                         std::to_string(wanted.size()) + " value columns (" + slots.columns +
                         "), this table has " + std::to_string(columns.size()) + made);
    }
    for (std::size_t i = 1; i < wanted.size(); ++i) {
        if (columns[i] != wanted[i]) {
            throw ValueError("optimizer: value column " + std::to_string(i) + " of " + slots.name +
                             " (" + slots.columns + "): expected " +
                             std::string(name(wanted[i].dtype)) + " " + to_string(wanted[i].shape) +
                             ", got " + std::string(name(columns[i].dtype)) + " " +
                             to_string(columns[i].shape) + made);
        }
    }
    auto const elements = static_cast<std::size_t>(num_elements(columns[0].shape));
    return std::visit(
        [&](auto const& one) -> RowStep {
            switch (columns[0].dtype) {
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

namespace tensorhash {

std::vector<Element> optimizer_columns(Optimizer const& optimizer, Element const& weights) {
    std::visit([](auto const& one) { table::check(one); }, optimizer);
    if (!table::is_float(weights.dtype)) {
        throw TypeError(
            "optimizer: weights, the first value column, must be float16, bfloat16, "
            "float32 or float64, got " +
            std::string(name(weights.dtype)));
    }
    table::Slots const slots =
        std::visit([](auto const& one) { return table::slots_of(one); }, optimizer);
    Element const state{weights.dtype == Dtype::Float64 ? Dtype::Float64 : Dtype::Float32,
                        weights.shape};
    std::vector<Element> columns{weights};
    columns.insert(columns.end(), slots.like_weights, state);
    if (slots.counts_steps) {
        columns.push_back({Dtype::Int64, {}});
    }
    return columns;
}

Missing missing_from_name(std::string_view name) {
    for (auto const& [word, missing] : {std::pair<std::string_view, Missing>{"skip", Missing::Skip},
                                        {"insert", Missing::Insert},
                                        {"error", Missing::Error}}) {
        if (word == name) return missing;
    }
    throw ValueError("missing: expected \"skip\", \"insert\" or \"error\", got \"" +
                     std::string(name) + "\"");
}

Duplicates duplicates_from_name(std::string_view name) {
    if (name == "in_order") return Duplicates::InOrder;
    if (name == "sum") return Duplicates::Sum;
    throw ValueError("duplicates: expected \"in_order\" or \"sum\", got \"" + std::string(name) +
                     "\"");
}

}  // namespace tensorhash
