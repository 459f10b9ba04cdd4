// Converts NumPy arrays through NumPy's C interface. For a few rows this is several times as fast
// as the buffer protocol.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>

#include "tensorhash/tensor.hpp"

namespace tensorhash::bindings {

/// Finds NumPy's C interface; called at import. If it is missing or its version is unknown, the
/// functions below return nullopt and None, and the buffer protocol is used instead.
void load_numpy();

/// A tensor over the memory of an aligned np.ndarray in native byte order; nullopt for others.
std::optional<Tensor> tensor_from_numpy(nanobind::handle object);

/// A NumPy array over the memory of a bound Tensor, which it keeps alive. None if NumPy lacks the
/// dtype or the tensor has no memory.
nanobind::object numpy_from_tensor(nanobind::handle tensor);

}  // namespace tensorhash::bindings
