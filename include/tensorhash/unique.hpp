// unique(): the distinct rows of an array.
#pragma once

#include "tensorhash/export.hpp"
#include "tensorhash/tensor.hpp"

namespace tensorhash {

/// Distinct rows of an array along axis 0, in order of first occurrence.
struct Unique {
    Tensor rows;     ///< [U, *row shape]
    Tensor index;    ///< int64 [U]: where each first occurs
    Tensor inverse;  ///< int64 [N]: the position of each input row in `rows`
    Tensor counts;   ///< int64 [U]: how often each occurs
};
/// Which results to compute besides `rows`. The others stay empty and cost nothing.
struct UniqueParts {
    bool index = true;
    bool inverse = true;
    bool counts = true;
};
/// The distinct rows of `array`. Float rows compare as keys do: -0.0 is 0.0, all NaNs are equal.
TH_API Unique unique(Tensor const& array, UniqueParts parts = {});

}  // namespace tensorhash
