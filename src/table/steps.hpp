// The optimizers' steps for one row, chosen once per call.
#pragma once

#include "tensorhash/optimizer.hpp"

namespace tensorhash::table {

/// The optimizer's step on rows of these columns. Throws ValueError for a hyperparameter out of range and for columns
/// that are not the optimizer's.
RowStep make_step(Optimizer const& optimizer, std::vector<Element> const& columns);

}  // namespace tensorhash::table
