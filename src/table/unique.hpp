// The distinct rows of an array, by an index that is used once.
#pragma once

#include "backend/batch.hpp"
#include "tensorhash/unique.hpp"

namespace tensorhash::table {

/// unique() of rows that have at least one element.
Unique unique_rows(backend::KeyRows rows, Element const& element, UniqueParts parts);

}  // namespace tensorhash::table
