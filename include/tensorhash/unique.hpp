// unique(): the distinct rows of an array.
#pragma once

#include "tensorhash/export.hpp"
#include "tensorhash/tensor.hpp"

namespace tensorhash {

/// Distinct rows of an array along axis 0, in order of first occurrence.
struct Unique {
    Tensor rows;     ///< [U, *row shape]
    Tensor index;    ///< int64 [U]: the first row of each
    Tensor inverse;  ///< int64 [N]: which of `rows` each row is
    Tensor counts;   ///< int64 [U]
};
/// What is made beside the rows; the rest stays empty and costs nothing.
struct UniqueParts {
    bool index = true;
    bool inverse = true;
    bool counts = true;
};
TH_API Unique unique(Tensor const& array, UniqueParts parts = {});

}  // namespace tensorhash
