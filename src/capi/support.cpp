// Checks and converts the arguments of the C calls.
#include "capi/support.hpp"

namespace tensorhash::capi {
namespace {

thread_local std::string last_error;

constexpr std::int32_t kMaxRank = 63;

}  // namespace

th_status failed(th_status status, char const* what) noexcept {
    try {
        last_error = what;
    } catch (std::bad_alloc const&) {
        last_error.clear();
    }
    return status;
}

void require(void const* pointer, char const* argument) {
    if (pointer == nullptr) {
        throw ValueError(std::string(argument) + ": expected a pointer, got null");
    }
}

void require_count(std::int64_t count, char const* argument) {
    if (count < 0) {
        throw ValueError(std::string(argument) + ": expected at least 0, got " +
                         std::to_string(count));
    }
}

void require_choice(int given, int last, char const* argument) {
    if (given < 0 || given > last) {
        throw ValueError(std::string(argument) + ": expected 0 to " + std::to_string(last) +
                         ", got " + std::to_string(given));
    }
}

void require_limit(std::int64_t entries, std::int64_t limit) {
    if (entries > limit) {
        throw ValueError("limit: expected at least " + std::to_string(entries) +
                         ", the number of live entries, got " + std::to_string(limit));
    }
}

Element to_element(th_element const& element) {
    if (element.dtype < 1 || element.dtype > static_cast<int>(Dtype::Float64) || element.rank < 0 ||
        element.rank > kMaxRank) {
        throw TypeError("element: expected a dtype of 1 to 13 and a rank of 0 to 63, got " +
                        std::to_string(element.dtype) + " and " + std::to_string(element.rank));
    }
    if (element.rank > 0) {
        require(element.shape, "element.shape");
    }
    return {static_cast<Dtype>(element.dtype), Shape(element.shape, element.shape + element.rank)};
}

std::vector<Element> to_elements(th_element const* values, std::int32_t count) {
    require_count(count, "value_count");
    if (count > 0) {
        require(values, "values");
    }
    std::vector<Element> elements;
    for (std::int32_t i = 0; i < count; ++i) {
        elements.push_back(to_element(values[i]));
    }
    return elements;
}

Optimizer to_optimizer(th_optimizer const* given) {
    require(given, "optimizer");
    require_choice(given->kind, TH_ROW_WISE_ADAGRAD, "optimizer.kind");
    switch (given->kind) {
        case TH_SGD:
            return Sgd{given->lr, given->momentum, given->weight_decay, given->nesterov != 0};
        case TH_ADAGRAD:
            return Adagrad{given->lr, given->weight_decay, given->initial_accumulator_value,
                           given->eps};
        case TH_ROW_WISE_ADAGRAD:
            return RowWiseAdagrad{given->lr, given->weight_decay, given->initial_accumulator_value,
                                  given->eps};
        default:
            return Adam{given->lr,  given->beta1,        given->beta2,
                        given->eps, given->weight_decay, given->decoupled_weight_decay != 0};
    }
}

UpdateOptions to_options(th_missing missing, th_duplicates duplicates) {
    require_choice(missing, TH_ERROR, "missing");
    require_choice(duplicates, TH_ADD_UP, "duplicates");
    UpdateOptions options;
    options.missing = static_cast<Missing>(missing);
    options.duplicates = static_cast<DuplicateKeys>(duplicates);
    return options;
}

std::vector<Reduce> to_reduces(th_reduce const* reduce, std::size_t columns) {
    std::vector<Reduce> reduces;
    for (std::size_t i = 0; i < columns; ++i) {
        require(reduce, "reduce");
        require_choice(reduce[i], TH_COUNT, "reduce");
        reduces.push_back(static_cast<Reduce>(reduce[i]));
    }
    return reduces;
}

Tensor rows_of(void const* data, std::int64_t rows, Element const& element, char const* argument) {
    require_count(rows, "rows");
    if (rows > 0) {
        require(data, argument);
    }
    Shape shape{rows};
    shape.insert(shape.end(), element.shape.begin(), element.shape.end());
    return Tensor::borrow(data, std::move(shape), element.dtype, {}, place_of_arrays());
}

std::vector<Tensor> columns_of(std::vector<Element> const& elements, void const* const* values,
                               std::int64_t rows) {
    std::vector<Tensor> columns;
    for (Element const& element : elements) {
        if (rows > 0) {
            require(values, "values");
        }
        void const* const data = rows > 0 ? values[columns.size()] : nullptr;
        columns.push_back(rows_of(data, rows, element, "values"));
    }
    return columns;
}

Element const& column_of(std::vector<Element> const& elements, std::int32_t column) {
    if (column < 0 || static_cast<std::size_t>(column) >= elements.size()) {
        throw IndexError("column: expected at least 0 and less than " +
                         std::to_string(elements.size()) + ", the number of value columns, got " +
                         std::to_string(column));
    }
    return elements[static_cast<std::size_t>(column)];
}

Tensor missing_of(void const* missing, std::int32_t per_row, std::int64_t rows,
                  Element const& element) {
    if (missing == nullptr) {
        return {};
    }
    return per_row != 0
               ? rows_of(missing, rows, element, "missing")
               : Tensor::borrow(missing, element.shape, element.dtype, {}, place_of_arrays());
}

}  // namespace tensorhash::capi

char const* th_last_error(void) { return tensorhash::capi::last_error.c_str(); }
