// The sums of a row and an offset that an index does not have yet.
#pragma once

#include "coords/tables/coord_index.hpp"

namespace tensorhash::coords {

/// The distinct rows base[n] + offsets[k] that `known` does not have, offset by offset, in order of
/// first occurrence. Both are int32 rows with the columns of `known`. Throws ValueError that names
/// rows, column and sum if a sum leaves the range.
CoordRows new_rows(CoordIndex const& known, CoordRows const& base, CoordRows const& offsets,
                   RowRange range);

}  // namespace tensorhash::coords
