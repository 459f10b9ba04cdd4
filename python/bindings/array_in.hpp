// Python arrays as tensors, without a copy: the buffer protocol and DLPack.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "tensorhash/dtype.hpp"
#include "tensorhash/tensor.hpp"

namespace tensorhash::bindings {

/// A tensor over the memory of `object`: a bound Tensor, anything with the buffer protocol or with
/// `__dlpack__` (a bare capsule too). Strides are kept; a foreign byte order alone costs a copy.
/// Errors name `argument` and `wanted`, which is not checked otherwise: that is the table's work.
Tensor to_tensor(nanobind::handle object, char const* argument, Dtype wanted = Dtype::Undefined);

/// The same, read as `dtype` of equal width: bfloat16 arrays come as uint16.
Tensor to_tensor_as(nanobind::handle object, char const* argument, Dtype dtype);

/// Takes over what a DLPack capsule of either name holds, or asks `object` for one.
Tensor tensor_from_dlpack(nanobind::handle object, char const* argument);

/// "ndarray", "int": the class of an object, for messages.
std::string class_name(nanobind::handle object);

}  // namespace tensorhash::bindings
