// NumPy's arrays by their C interface, in and out: several times as fast as the buffer protocol for
// a few rows.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>

#include "tensorhash/tensor.hpp"

namespace tensorhash::bindings {

/// Finds NumPy's C interface, at import. Without it, or with one that nobody has seen yet, the
/// functions below answer that they cannot, and arrays come and go by the buffer protocol.
void load_numpy();

/// A tensor over the memory of a plain, aligned array of native numbers; none for everything else.
std::optional<Tensor> tensor_from_numpy(nanobind::handle object);

/// An array over the memory of a bound Tensor, which it keeps alive; None if NumPy has no number
/// for the dtype.
nanobind::object numpy_from_tensor(nanobind::handle tensor);

}  // namespace tensorhash::bindings
