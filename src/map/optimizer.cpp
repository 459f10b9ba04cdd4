// Optimizers as arguments: hyperparameters, the columns that they need, names of options.
#include "tensorhash/optimizer.hpp"

#include <cmath>
#include <string>
#include <utility>

#include "map/update_arguments.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash {
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

/// Both kinds of Adagrad have the same settings.
template <class AnyAdagrad>
void check_adagrad(AnyAdagrad const& adagrad) {
    require_not_negative("lr", adagrad.lr);
    require_not_negative("weight_decay", adagrad.weight_decay);
    require_not_negative("initial_accumulator_value", adagrad.initial_accumulator_value);
    require_not_negative("eps", adagrad.eps);
}

void check(Adagrad const& adagrad) { check_adagrad(adagrad); }
void check(RowWiseAdagrad const& adagrad) { check_adagrad(adagrad); }

void check(Adam const& adam) {
    require_not_negative("lr", adam.lr);
    require(adam.beta1 >= 0 && adam.beta1 < 1, "beta1", "0 <= beta1 < 1", adam.beta1);
    require(adam.beta2 >= 0 && adam.beta2 < 1, "beta2", "0 <= beta2 < 1", adam.beta2);
    require_not_negative("eps", adam.eps);
    require_not_negative("weight_decay", adam.weight_decay);
}

/// The columns that an optimizer needs: the weights, and those described here.
struct NeededColumns {
    char const* name;     // of the optimizer
    char const* columns;  // all of them, for messages
    std::size_t like_weights;
    std::size_t of_rows = 0;  // one number per key, of the dtype of the state
    bool counts_steps = false;
};

NeededColumns needed_by(Sgd const& sgd) {
    return sgd.momentum > 0 ? NeededColumns{"SGD with momentum", "weights, momentum", 1}
                            : NeededColumns{"SGD", "weights", 0};
}
NeededColumns needed_by(Adagrad const&) {
    return {"Adagrad", "weights, sum of squared gradients", 1};
}
NeededColumns needed_by(RowWiseAdagrad const&) {
    return {"row-wise Adagrad", "weights, sum of mean squared gradients", 0, 1};
}
NeededColumns needed_by(Adam const&) {
    return {"Adam", "weights, first moment, second moment, step count", 2, 0, true};
}

bool is_float(Dtype dtype) noexcept {
    return dtype == Dtype::Float16 || dtype == Dtype::BFloat16 || dtype == Dtype::Float32 ||
           dtype == Dtype::Float64;
}

}  // namespace

void map::check_optimizer(Optimizer const& optimizer, std::vector<Element> const& columns) {
    NeededColumns const needed =
        std::visit([](auto const& one) { return needed_by(one); }, optimizer);
    std::string const made = "; make the table with the optimizer's columns";
    if (columns.empty()) {
        throw ValueError(std::string("optimizer: ") + needed.name + " needs value columns (" +
                         needed.columns + "), this table has none" + made);
    }
    std::vector<Element> const wanted = optimizer_columns(optimizer, columns[0]);
    if (columns.size() < wanted.size()) {
        throw ValueError(std::string("optimizer: ") + needed.name + " needs " +
                         std::to_string(wanted.size()) + " value columns (" + needed.columns +
                         "), this table has " + std::to_string(columns.size()) + made);
    }
    for (std::size_t i = 1; i < wanted.size(); ++i) {
        if (columns[i] != wanted[i]) {
            throw ValueError("optimizer: value column " + std::to_string(i) + " of " + needed.name +
                             " (" + needed.columns + "): expected " +
                             std::string(name(wanted[i].dtype)) + " " + to_string(wanted[i].shape) +
                             ", got " + std::string(name(columns[i].dtype)) + " " +
                             to_string(columns[i].shape) + made);
        }
    }
}

std::vector<Element> optimizer_columns(Optimizer const& optimizer, Element const& weights) {
    std::visit([](auto const& one) { check(one); }, optimizer);
    if (!is_float(weights.dtype)) {
        throw TypeError(
            "optimizer: weights, the first value column, must be float16, bfloat16, "
            "float32 or float64, got " +
            std::string(name(weights.dtype)));
    }
    NeededColumns const needed =
        std::visit([](auto const& one) { return needed_by(one); }, optimizer);
    Element const state{weights.dtype == Dtype::Float64 ? Dtype::Float64 : Dtype::Float32,
                        weights.shape};
    std::vector<Element> columns{weights};
    columns.insert(columns.end(), needed.like_weights, state);
    columns.insert(columns.end(), needed.of_rows, {state.dtype, {}});
    if (needed.counts_steps) {
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

DuplicateKeys duplicates_from_name(std::string_view name) {
    if (name == "in_order") return DuplicateKeys::InOrder;
    if (name == "sum") return DuplicateKeys::Sum;
    throw ValueError("duplicates: expected \"in_order\" or \"sum\", got \"" + std::string(name) +
                     "\"");
}

}  // namespace tensorhash
