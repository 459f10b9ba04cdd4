// Elements of tensors on the CPU or on a device: casts, rows by mask or by number, writes to views.
#pragma once

#include "tensorhash/export.hpp"
#include "tensorhash/tensor.hpp"

namespace tensorhash {

// Arrays of one call are on one device, where the call runs. All dtypes are allowed unless said
// otherwise.

/// A contiguous copy in another dtype. Floats lose their fraction when they become integers, and
/// round to nearest even when they become shorter; to bfloat16 by way of float32, as in NumPy and
/// torch. Integers keep their low bits. A float that the integer cannot hold, and NaN, give any
/// number.
TH_API Tensor cast(Tensor const& tensor, Dtype dtype);

/// The positions of the true elements of a bool array with one axis, ascending, as int64. On a
/// device the host waits for their count.
TH_API Tensor true_positions(Tensor const& mask);

/// The rows of `array` at `indices`, integers with one axis. Negative ones count from the end.
/// Throws IndexError for rows that do not exist; so the host waits on a device.
TH_API Tensor take_rows(Tensor const& array, Tensor const& indices);

/// Writes row i of `values` to the row of `array` at indices[i]; of equal indices the last one
/// wins. `array` is contiguous, `values` has its dtype and shape [indices, *row]. As take_rows().
TH_API void put_rows(Tensor& array, Tensor const& indices, Tensor const& values);

/// Copies `values`, of the same dtype and shape, to the elements of `array`, which may be strided.
/// The two may share memory.
TH_API void assign(Tensor& array, Tensor const& values);

}  // namespace tensorhash
