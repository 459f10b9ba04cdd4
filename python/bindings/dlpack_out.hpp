// Tensors as DLPack capsules, of the old name and of the versioned one.
#pragma once

#include <nanobind/nanobind.h>

#include "tensorhash/tensor.hpp"

namespace tensorhash::bindings {

/// A "dltensor" capsule. It cannot say that the memory is read-only: the caller answers for that.
nanobind::object legacy_capsule(Tensor const& tensor);

/// The `__dlpack__` of the array API standard; BufferError for what cannot be exported as asked.
nanobind::object standard_dlpack(Tensor const& tensor, nanobind::object stream,
                                 nanobind::object max_version, nanobind::object dl_device,
                                 nanobind::object copy);

}  // namespace tensorhash::bindings
