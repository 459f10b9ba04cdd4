// The shard of a key by hash_policy(). Files name this rule, so it never changes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensorhash/dtype.hpp"

namespace tensorhash::cpu {

/// The shard of one key of `bytes` bytes. `float_bytes` is 4 or 8 for float keys, else 0.
std::int32_t shard_of_key(void const* key, std::size_t bytes, std::size_t float_bytes,
                          int shards) noexcept;
/// The shards of rows [begin, end) of `keys`.
void hash_shards(unsigned char const* keys, Element const& element, int shards, std::size_t begin,
                 std::size_t end, std::int32_t* shard) noexcept;

}  // namespace tensorhash::cpu
