// The rank of a key by the rule "murmur64-v1". Checkpoints name this rule, so it never changes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensorhash/dtype.hpp"

namespace tensorhash::cpu {

/// The ranks of rows [begin, end) of `keys`, each below `ranks`.
void hash_ranks(unsigned char const* keys, Element const& element, std::uint64_t ranks,
                std::size_t begin, std::size_t end, std::uint16_t* rank) noexcept;

}  // namespace tensorhash::cpu
