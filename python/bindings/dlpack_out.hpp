// Exports tensors as DLPack capsules, legacy or versioned.
#pragma once

#include <nanobind/nanobind.h>

#include "tensorhash/tensor.hpp"

namespace tensorhash::bindings {

/// A "dltensor" capsule. It cannot mark memory as read-only: the caller must prevent writes. On a
/// device the legacy default stream waits for the tensor, because a capsule names no stream.
nanobind::object bare_capsule(Tensor const& tensor);

/// `__dlpack__` of the array API standard. Raises BufferError if the export is not possible.
nanobind::object standard_dlpack(Tensor const& tensor, nanobind::object stream,
                                 nanobind::object max_version, nanobind::object dl_device,
                                 nanobind::object copy);

}  // namespace tensorhash::bindings
