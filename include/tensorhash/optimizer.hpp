// Steps for HashMap::update: SGD, Adagrad and Adam, whose state is in value columns of the table, and steps of one's own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "tensorhash/dtype.hpp"
#include "tensorhash/export.hpp"
#include "tensorhash/tensor.hpp"

namespace tensorhash {

/// What `update` does with the rows whose key is not there.
enum class Missing : std::uint8_t {
    Skip = 0,    ///< nothing; their index is -1
    Insert = 1,  ///< adds the key, weights `initial` or zero and state zero, then steps
    Error = 2,   ///< throws KeyError, nothing changed
};

/// What `update` does with rows of equal keys.
enum class Duplicates : std::uint8_t {
    InOrder = 0,  ///< a step for each, in row order
    Sum = 1,      ///< adds their gradients up in row order, then one step
};

/// Both throw ValueError that lists the names.
TH_API Missing missing_from_name(std::string_view name);
TH_API Duplicates duplicates_from_name(std::string_view name);

struct UpdateOptions {
    Missing missing = Missing::Skip;
    Duplicates duplicates = Duplicates::InOrder;
    /// The weights of keys that Missing::Insert adds: [*shape] for all or [N, *shape] one per row; without it zeros.
    Tensor initial = {};
};

/// w -= lr * g. Columns: weights; with momentum also its buffer.
struct Sgd {
    double lr = 1e-3;
    double momentum = 0;
    double weight_decay = 0;
    bool nesterov = false;
};

/// w -= lr * g / (sqrt(initial + sum of g*g) + eps). Columns: weights, sum of squared gradients.
struct Adagrad {
    double lr = 1e-2;
    double weight_decay = 0;
    double initial_accumulator_value = 0;
    double eps = 1e-10;
};

/// Columns: weights, first moment, second moment, int64 count of the key's own steps.
struct Adam {
    double lr = 1e-3;
    double beta1 = 0.9;
    double beta2 = 0.999;
    double eps = 1e-8;
    double weight_decay = 0;
    bool decoupled_weight_decay =
        false;  ///< AdamW's: shrinks the weights, stays out of the moments
};

using Optimizer = std::variant<Sgd, Adagrad, Adam>;

/// The value columns that a table for this optimizer has, weights first. Zeros are fresh state. The state has the
/// weights' dtype, or float32 if that is a half. Throws TypeError unless the weights are floats.
TH_API std::vector<Element> optimizer_columns(Optimizer const& optimizer, Element const& weights);

/// What a step of one's own is given: a key's values, to be changed in place, and the row's gradient.
class UpdateRow {
public:
    UpdateRow(std::span<unsigned char* const> columns, unsigned char const* gradient) noexcept
        : columns_(columns), gradient_(gradient) {}
    /// The first element of the key's value in a column; T is the column's type.
    template <class T = float>
    T* value(std::size_t column = 0) const {
        return reinterpret_cast<T*>(columns_[column]);
    }
    template <class T = float>
    T const* gradient() const {
        return reinterpret_cast<T const*>(gradient_);
    }

private:
    std::span<unsigned char* const> columns_;
    unsigned char const* gradient_;
};

/// Called once a row, for different keys on several threads at once. Like the standard's parallel algorithms it must not
/// throw: that ends the program.
using RowStep = std::function<void(UpdateRow const&)>;

}  // namespace tensorhash
