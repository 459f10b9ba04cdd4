// Reduce: how `accumulate` combines a row with the stored value.
#pragma once

#include <cstdint>
#include <string_view>

#include "tensorhash/export.hpp"

namespace tensorhash {

/// The values are part of the C interface. Any and All need a bool column. Count needs an integer
/// column: it adds 1 per row and ignores the values.
enum class Reduce : std::uint8_t {
    First = 0,
    Last = 1,
    Sum = 2,
    Min = 3,
    Max = 4,
    Prod = 5,
    Any = 6,
    All = 7,
    Count = 8,
};

/// Throws a ValueError that lists the valid names.
TH_API Reduce reduce_from_name(std::string_view name);

}  // namespace tensorhash
