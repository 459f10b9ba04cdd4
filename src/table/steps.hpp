// Optimizer steps for one row, chosen once per call.
#pragma once

#include "tensorhash/optimizer.hpp"

namespace tensorhash::table {

/// The optimizer's step for a table with the optimizer's columns; the first column is `weights`.
RowStep make_step(Optimizer const& optimizer, Element const& weights);

}  // namespace tensorhash::table
