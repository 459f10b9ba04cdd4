// The order in which a search takes its queries.
#pragma once

#include <cstdint>
#include <vector>

#include "coords/neighbours/points.hpp"

namespace tensorhash::coords {

/// The rows, so that near ones follow each other. They read the same nodes and start from each
/// other's answers. The order never shows in the result.
std::vector<std::uint32_t> near_each_other(Points const& queries);

}  // namespace tensorhash::coords
