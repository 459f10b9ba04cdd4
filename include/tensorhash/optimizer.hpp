// Steps for HashMap::update: SGD, Adagrad, row-wise Adagrad, Adam and custom functions. Optimizer
// state lives in value columns of the table.
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

/// What `update` does with rows if their key is not in the table.
enum class Missing : std::uint8_t {
    Skip = 0,    ///< skips the row; its index is -1
    Insert = 1,  ///< adds the key with weights `initial` or zeros and zero state, then steps
    Error = 2,   ///< throws KeyError and changes nothing
};

/// What `update` does with rows of equal keys.
enum class DuplicateKeys : std::uint8_t {
    InOrder = 0,  ///< one step per row, in row order
    Sum = 1,      ///< sums their gradients in row order, then takes one step
};

/// From "skip", "insert" or "error". Throws a ValueError that lists these names.
TH_API Missing missing_from_name(std::string_view name);
/// From "in_order" or "sum". Throws a ValueError that lists these names.
TH_API DuplicateKeys duplicates_from_name(std::string_view name);

/// What `update` does with missing keys and with equal keys.
struct UpdateOptions {
    Missing missing = Missing::Skip;
    DuplicateKeys duplicates = DuplicateKeys::InOrder;
    /// Weights of the keys that Missing::Insert adds: [*shape] for all keys or [N, *shape] with one
    /// per row. Default: zeros.
    Tensor initial = {};
};

/// w -= lr * g. Columns: weights, and with momentum a momentum buffer.
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

/// Adagrad with one number per key: w -= lr * g / (sqrt(initial + sum of mean(g*g)) + eps).
/// Columns: weights, sum of mean squared gradients, which has the shape [].
struct RowWiseAdagrad {
    double lr = 1e-2;
    double weight_decay = 0;
    double initial_accumulator_value = 0;
    double eps = 1e-10;
};

/// Columns: weights, first moment, second moment, int64 count of this key's steps.
struct Adam {
    double lr = 1e-3;
    double beta1 = 0.9;
    double beta2 = 0.999;
    double eps = 1e-8;
    double weight_decay = 0;
    bool decoupled_weight_decay = false;  ///< AdamW: decays the weights, not the gradient
};

using Optimizer = std::variant<Sgd, Adagrad, Adam, RowWiseAdagrad>;

/// The value columns of this optimizer, weights first. State has the dtype of the weights, or
/// float32 for 16-bit weights; new state is zero. Throws TypeError unless the weights are floats.
TH_API std::vector<Element> optimizer_columns(Optimizer const& optimizer, Element const& weights);

/// The argument of a custom step: the values of one key, to change in place, and one gradient.
class UpdateRow {
public:
    UpdateRow(std::span<unsigned char* const> columns, unsigned char const* gradient) noexcept
        : columns_(columns), gradient_(gradient) {}
    /// The first element of the key's value in a column. T must be the column's type.
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

/// A custom step: called once per row, or with DuplicateKeys::Sum once per distinct key. Several
/// threads call it at once, for different keys. An exception terminates the program.
using RowStep = std::function<void(UpdateRow const&)>;

/// Called with a row and the addresses of its key's values, one per column. If it throws, the
/// table restores all values.
using RowChange = std::function<void(std::size_t row, void* const* values)>;

}  // namespace tensorhash
