// Points in float64, and the batch of each point.
#pragma once

#include <cstddef>
#include <cstdint>
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

/// From any real dtype and strides, shape [N, D] with D > 0. Refuses NaN, infinities and integers
/// above 2^53, which float64 cannot tell apart, and counts them in the message.
Points to_points(Tensor const& tensor, std::string const& argument);

/// The batch of each row as int64, contiguous, from any integer dtype. Throws ValueError if a
/// uint64 does not fit.
Tensor to_batch(Tensor const& batch, std::string const& argument);

}  // namespace tensorhash::coords
