// Python arrays as tensors, without a copy: the buffer protocol and DLPack.
#pragma once

#include <nanobind/nanobind.h>

#include "tensorhash/dtype.hpp"
#include "tensorhash/tensor.hpp"

namespace tensorhash::bindings {

/// A tensor over the memory of `object`: a bound Tensor, anything with the buffer protocol, or anything with
/// `__dlpack__` (a bare capsule too). Strides are kept; a foreign byte order alone costs a copy. Errors name `argument`.
Tensor to_tensor(nanobind::handle object, char const* argument);

/// The same, read as `dtype` of equal width: bfloat16 arrays come as uint16.
Tensor to_tensor_as(nanobind::handle object, char const* argument, Dtype dtype);

/// Takes over what a DLPack capsule holds, of either name; or asks `object` for one after looking at its device.
Tensor tensor_from_dlpack(nanobind::handle object, char const* argument);

}  // namespace tensorhash::bindings
