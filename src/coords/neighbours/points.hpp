// Points as callers hand them over, checked and in float64, and the batch that each belongs to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "tensorhash/tensor.hpp"

namespace tensorhash::coords {

/// Finite float64 rows, contiguous.
struct Points {
    Tensor tensor;
    std::size_t rows = 0;
    std::size_t axes = 0;

    double const* data() const noexcept { return static_cast<double const*>(tensor.data()); }
    double const* row(std::size_t i) const noexcept { return data() + i * axes; }
};

/// Takes any real dtype and strides, shape [N, D] with D > 0. NaN, infinities and integers beyond 2^53, which float64
/// cannot tell apart, are refused and counted.
Points check_points(Tensor const& tensor, std::string const& argument);

/// The batch of each of `rows` rows, int64 and contiguous.
Tensor check_batch_of(Tensor const& batch, std::size_t rows, std::string const& argument);

}  // namespace tensorhash::coords
