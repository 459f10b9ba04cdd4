// One accumulate step on one stored value, element by element and without tricks. It has its own
// half-precision code, through double, so that the core's code does not judge itself.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensorhash/dtype.hpp"
#include "tensorhash/hash_map.hpp"

namespace th_test {

float from_bfloat16(std::uint16_t bits);
/// Round to nearest, ties to even; a NaN stays a NaN.
std::uint16_t to_bfloat16(float x);

float from_float16(std::uint16_t bits);
/// Round to nearest, ties to even: the nearest multiple of the spacing at x.
std::uint16_t to_float16(float x);

/// Combines one row of `bytes` bytes: `stored` becomes the result of `how` on it and `given`.
void reduce_row(tensorhash::Dtype dtype, tensorhash::Reduce how, char* stored, char const* given,
                std::size_t bytes);

}  // namespace th_test
