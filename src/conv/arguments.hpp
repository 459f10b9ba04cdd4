// Checks the arguments of a convolution before anything is computed.
#pragma once

#include <cstdint>
#include <string_view>

#include "conv/loops.hpp"
#include "tensorhash/conv.hpp"

namespace tensorhash::conv {

/// Features or gradients: contiguous, [rows, channels], a float dtype. Throws TypeError, ValueError
/// or DeviceError. `side` says what the rows are: "in" or "out".
Tensor check_rows(Tensor const& array, std::string_view argument, std::int64_t rows,
                  std::string_view side);

/// The weight: contiguous, [offsets of the plan, channels, out channels].
Tensor check_weight(Tensor const& weight, ConvPlan const& plan);

/// Throws DtypeError unless `array` has the dtype of the other array.
void require_same_dtype(Tensor const& array, std::string_view argument, Tensor const& other,
                        std::string_view other_argument);

/// Throws ValueError unless `groups` is positive and divides the `channels` of `argument`.
void check_groups(std::int64_t groups, std::int64_t channels, std::string_view argument);

}  // namespace tensorhash::conv
