// The size limit of a table, as src/table and what uses it directly know it.
#pragma once

#include "backend/table_errors.hpp"

namespace tensorhash::table {

using backend::fail_too_many;
using backend::kMaxEntries;

}  // namespace tensorhash::table
