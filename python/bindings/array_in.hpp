// Converts Python arrays to tensors without a copy, through the buffer protocol or DLPack.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>
#include <string>

#include "tensorhash/dtype.hpp"
#include "tensorhash/tensor.hpp"

namespace tensorhash::bindings {

/// Returns a tensor over the memory of `object`: a bound Tensor, a DLPack capsule, or anything with
/// the buffer protocol or `__dlpack__`. Keeps strides; copies only to swap bytes. `argument` and
/// `wanted` are for messages: the table checks the dtype.
Tensor to_tensor(nanobind::handle object, char const* argument, Dtype wanted = Dtype::Undefined);

/// to_tensor(), or nothing for None.
inline std::optional<Tensor> optional_tensor(nanobind::handle object, char const* argument) {
    if (object.is_none()) return std::nullopt;
    return to_tensor(object, argument);
}

/// Like to_tensor(), but reads elements of the same width as `dtype`: bfloat16 arrives as uint16.
Tensor to_tensor_as(nanobind::handle object, char const* argument, Dtype dtype);

/// Takes ownership from a DLPack capsule, legacy or versioned, or from `object.__dlpack__()`. On a
/// device `owners_stream` is the stream on which the owner writes and frees the memory; it stands
/// for the legacy default stream.
Tensor tensor_from_dlpack(nanobind::handle object, char const* argument,
                          std::optional<std::uintptr_t> owners_stream = {});

/// The class name of an object, such as "ndarray", for messages.
std::string class_name(nanobind::handle object);

}  // namespace tensorhash::bindings
