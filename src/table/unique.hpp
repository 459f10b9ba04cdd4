// The distinct rows of an array, found with a temporary index.
#pragma once

#include "backend/batch.hpp"
#include "tensorhash/unique.hpp"

namespace tensorhash::table {

/// unique() for rows of at least one element.
Unique unique_rows(backend::KeyRows rows, Element const& element, UniqueParts parts);

}  // namespace tensorhash::table
