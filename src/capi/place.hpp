// Where the arrays of this thread's C calls are: in host memory, or on a device.
#pragma once

#include "tensorhash/device.hpp"
#include "tensorhash/tensor.hpp"

namespace tensorhash::capi {

/// The device of the arrays of this thread's calls.
Device place_of_arrays() noexcept;
void set_place(Device device) noexcept;

/// Copies a result to the caller's array, which is where the result is.
void copy_out(Tensor const& from, void* to);

}  // namespace tensorhash::capi
