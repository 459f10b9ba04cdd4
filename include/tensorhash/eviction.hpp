// Eviction: which entry a full BoundedHashMap lets go, and what it hands back.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tensorhash/export.hpp"
#include "tensorhash/tensor.hpp"

namespace tensorhash {

/// Which entry leaves a full table. Numbers are part of the file format.
enum class Eviction : std::uint8_t {
    Lru = 0,    ///< the least recently used one
    Score = 1,  ///< the one with the smallest score; of equal scores the least recently used one
};

/// Throws ValueError that lists the names.
TH_API Eviction eviction_from_name(std::string_view name);

/// Entries that left, in the order in which they did, as they were then.
struct Evicted {
    Tensor keys;
    std::vector<Tensor> values;
    Tensor scores;  ///< int64 [E]: the caller's; with Eviction::Lru the clock of the last use
};

}  // namespace tensorhash
