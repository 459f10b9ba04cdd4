// A lookup in the indices of several shards at once, compiled per key reader and instruction-set
// level.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensorhash/step/view.hpp"

namespace tensorhash::cpu {

/// The rows of a lookup: each asks the index of its shard.
struct ShardedRows {
    step::IndexView const* indices;  // one per shard
    std::int32_t const* shards;      // [rows]
    unsigned char const* keys;       // [rows, key bytes], contiguous
    std::int64_t* global;            // [rows]: shard << 32 | buffer index, or -1
    unsigned char* mask;             // [rows]: 0 or 1
};

/// Fills in `global` and `mask` of the rows [begin, end).
using FindInShards = void (*)(ShardedRows const& rows, std::size_t begin, std::size_t end);

/// The loop for this key format, at the level of index_loops().
FindInShards find_in_shards(std::uint32_t key_bytes, std::uint32_t float_bytes);

}  // namespace tensorhash::cpu
