// Makes the plan of a group-by and reads results from the states of its folds.
#include "data/plan.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "data/columns.hpp"
#include "runtime/parallel.hpp"
#include "tensor/shapes.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::data {
namespace {

constexpr std::array<std::pair<std::string_view, Aggregate>, 15> kNames{{
    {"sum", Aggregate::Sum},
    {"mean", Aggregate::Mean},
    {"min", Aggregate::Min},
    {"max", Aggregate::Max},
    {"count", Aggregate::Count},
    {"prod", Aggregate::Prod},
    {"any", Aggregate::Any},
    {"all", Aggregate::All},
    {"var", Aggregate::Var},
    {"std", Aggregate::Std},
    {"first", Aggregate::First},
    {"last", Aggregate::Last},
    {"argmin", Aggregate::ArgMin},
    {"argmax", Aggregate::ArgMax},
    {"nunique", Aggregate::NUnique},
}};

FoldKind fold_of(Aggregate what) {
    switch (what) {
        case Aggregate::Sum:
            return FoldKind::Sum;
        case Aggregate::Mean:
            return FoldKind::DoubleSum;
        case Aggregate::Min:
            return FoldKind::Min;
        case Aggregate::Max:
            return FoldKind::Max;
        case Aggregate::Prod:
            return FoldKind::Prod;
        case Aggregate::Any:
            return FoldKind::Any;
        case Aggregate::All:
            return FoldKind::All;
        case Aggregate::Var:
        case Aggregate::Std:
            return FoldKind::Moments;
        case Aggregate::First:
            return FoldKind::First;
        case Aggregate::Last:
            return FoldKind::Last;
        case Aggregate::ArgMin:
            return FoldKind::ArgMin;
        case Aggregate::ArgMax:
            return FoldKind::ArgMax;
        case Aggregate::Count:
        case Aggregate::NUnique:
            break;
    }
    return FoldKind::Count;
}

Dtype result_dtype(Aggregate what, Dtype values) {
    switch (what) {
        case Aggregate::Sum:
        case Aggregate::Prod:
            switch (domain_of(values)) {
                case Domain::Signed:
                    return Dtype::Int64;
                case Domain::Unsigned:
                    return Dtype::UInt64;
                case Domain::Double:
                    return values;
            }
            break;
        case Aggregate::Mean:
        case Aggregate::Var:
        case Aggregate::Std:
            return Dtype::Float64;
        case Aggregate::Any:
        case Aggregate::All:
            return Dtype::Bool;
        case Aggregate::Min:
        case Aggregate::Max:
        case Aggregate::First:
        case Aggregate::Last:
            return values;
        default:
            break;
    }
    return Dtype::Int64;
}

template <class Body>
void for_groups(std::size_t groups, Body&& body) {
    runtime::for_ranges(groups, runtime::kGrain, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) body(i);
    });
}

double as_double(std::uint64_t word) { return std::bit_cast<double>(word); }

/// The sample variance: divided by count - 1, as pandas and polars do. NaN for a single row.
double variance(std::uint64_t const* moments) {
    if (moments[0] < 2) return std::numeric_limits<double>::quiet_NaN();
    return as_double(moments[2]) / static_cast<double>(moments[0] - 1);
}

std::uint64_t const* words_of(Tensor const& states) {
    return static_cast<std::uint64_t const*>(states.data());
}

}  // namespace

Aggregate aggregate_from_name(std::string_view name) {
    std::string expected;
    for (auto const& [word, what] : kNames) {
        if (word == name) return what;
        expected += (expected.empty() ? "" : ", ") + std::string(word);
    }
    throw ValueError("agg: expected one of " + expected + "; got " + std::string(name));
}

void check_values_element(Element const& values, Aggregate what, std::string const& argument) {
    if (values.dtype == Dtype::Undefined) {
        throw ValueError(argument + ": expected values, got none; only count takes none");
    }
    if (num_elements(values.shape) < 1) {
        throw ValueError(argument + ": expected at least one number per row, got element shape " +
                         to_string(values.shape));
    }
    bool const is_half = values.dtype == Dtype::Float16 || values.dtype == Dtype::BFloat16;
    if (what == Aggregate::NUnique && is_half) {
        throw TypeError(argument + ": nunique expects bool, integers, float32 or float64, got " +
                        std::string(name(values.dtype)));
    }
}

Plan::Plan(std::vector<Element> const& arrays, std::vector<Wanted> const& wanted) {
    std::vector<std::size_t> first_columns;
    for (Element const& array : arrays) {
        first_columns.push_back(columns_);
        columns_ += static_cast<std::size_t>(num_elements(array.shape));
    }
    for (auto const& [what, array] : wanted) {
        if (what == Aggregate::Count) {
            outputs_.push_back({what, {Dtype::Int64, {}}});
            outputs_.back().folds = {fold(FoldKind::Count, Domain::Signed, kNoColumn)};
            continue;
        }
        Output output{what, arrays[array], first_columns[array]};
        Domain const domain = domain_of(output.values.dtype);
        for (std::size_t i = 0; what != Aggregate::NUnique && i < output.width(); ++i) {
            output.folds.push_back(fold(fold_of(what), domain, output.first_column + i));
        }
        if (what == Aggregate::Mean) count_ = fold(FoldKind::Count, Domain::Signed, kNoColumn);
        outputs_.push_back(std::move(output));
    }
}

/// The fold, added unless the plan has it.
std::size_t Plan::fold(FoldKind kind, Domain domain, std::size_t column) {
    if (kind == FoldKind::DoubleSum && domain == Domain::Double) kind = FoldKind::Sum;
    Fold const wanted{kind, domain, column};
    auto const found = std::find(folds_.begin(), folds_.end(), wanted);
    if (found != folds_.end()) return static_cast<std::size_t>(found - folds_.begin());
    folds_.push_back(wanted);
    return folds_.size() - 1;
}

bool Plan::has_nunique() const noexcept {
    return std::any_of(outputs_.begin(), outputs_.end(),
                       [](Output const& one) { return one.what == Aggregate::NUnique; });
}

Tensor Plan::finish(Output const& output, States const& states, std::size_t groups) const {
    Dtype const dtype = result_dtype(output.what, output.values.dtype);
    Shape const shape = with_rows(groups, output.values.shape);
    std::size_t const width = output.width();
    std::size_t const step = folds_[output.folds[0]].ops().words;
    bool const reads_states = output.what == Aggregate::Mean || output.what == Aggregate::Var ||
                              output.what == Aggregate::Std;
    if (width == 1 && step == 1 && byte_size(dtype) == 8 && !reads_states) {
        Tensor const& memory = states[output.folds[0]];  // the states are the result
        return Tensor::borrow(memory.data(), shape, dtype, memory.owner());
    }
    Tensor out = Tensor::empty(shape, dtype);
    for (std::size_t i = 0; i < width; ++i) {
        std::uint64_t const* const words = words_of(states[output.folds[i]]);
        if (output.what == Aggregate::Mean) {
            std::uint64_t const* const counts = words_of(states[count_]);
            auto* const means = static_cast<double*>(out.data());
            for_groups(groups, [&](std::size_t group) {
                means[group * width + i] =
                    as_double(words[group]) / static_cast<double>(counts[group]);
            });
        } else if (reads_states) {
            auto* const numbers = static_cast<double*>(out.data());
            bool const root = output.what == Aggregate::Std;
            for_groups(groups, [&](std::size_t group) {
                double const found = variance(words + group * step);
                numbers[group * width + i] = root ? std::sqrt(found) : found;
            });
        } else {
            // The row of an arg follows its value.
            bool const is_arg =
                output.what == Aggregate::ArgMin || output.what == Aggregate::ArgMax;
            narrow(words + (is_arg ? 1 : 0), step, groups, dtype,
                   static_cast<unsigned char*>(out.data()) + i * byte_size(dtype), width);
        }
    }
    return out;
}

}  // namespace tensorhash::data
