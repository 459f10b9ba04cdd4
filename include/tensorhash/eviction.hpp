// Eviction: which entry leaves a full BoundedHashMap, and how it is returned.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tensorhash/export.hpp"
#include "tensorhash/tensor.hpp"

namespace tensorhash {

/// Which entry leaves a full table. The values are part of the file format.
enum class Eviction : std::uint8_t {
    Lru = 0,    ///< the least recently used
    Score = 1,  ///< the one with the lowest score; of equal scores the least recently used
};

/// Throws a ValueError that lists the valid names.
TH_API Eviction eviction_from_name(std::string_view name);

/// Evicted entries in the order in which they left, with their values at that time.
struct Evicted {
    Tensor keys;
    std::vector<Tensor> values;
    Tensor scores;  ///< int64 [E]: the caller's, or with Eviction::Lru the clock of the last use
};

}  // namespace tensorhash
