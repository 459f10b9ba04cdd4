// The loops that group the rows of a batch by shard and bring their answers back, compiled once per
// instruction-set level.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tensorhash::cpu {

/// With more shards than this, one row after the other is as fast as many at once.
inline constexpr std::uint32_t kFewShards = 16;

/// Rows [begin, end) of a batch.
struct ShardedChunk {
    std::int32_t const* shard_of_row;  // [rows]
    std::size_t begin;
    std::size_t end;
    std::uint32_t shards;
    std::uint32_t* next;  // [shards]: where the next row of each shard goes; the loops move it on
};

/// Answers for the rows in their places.
struct GroupedAnswers {
    std::uint32_t const* indices;
    unsigned char const* mask;
};

struct RouteLoops {
    /// The shards of integer keys of eight bytes, by the built-in hash, for rows [begin, end).
    void (*hash_words)(unsigned char const* keys, std::uint32_t shards, std::size_t begin,
                       std::size_t end, std::int32_t* shard_of_row);
    /// Adds the rows of each shard to `next`.
    void (*count)(ShardedChunk const& chunk);
    /// to[place] = row.
    void (*list)(ShardedChunk const& chunk, std::uint32_t* to);
    /// Copies rows of eight bytes to their places.
    void (*group_words)(ShardedChunk const& chunk, unsigned char const* from, unsigned char* to);
    /// Brings indices back to their rows: they become shard << 32 | index; -1 stays. The mask says
    /// which rows have one.
    void (*ungroup_found)(ShardedChunk const& chunk, std::uint32_t const* grouped,
                          std::int64_t* indices, unsigned char* mask);
    /// The same with a mask that is given.
    void (*ungroup)(ShardedChunk const& chunk, GroupedAnswers const& grouped, std::int64_t* indices,
                    unsigned char* mask);
    void (*ungroup_mask)(ShardedChunk const& chunk, unsigned char const* grouped,
                         unsigned char* mask);
    /// Do they take many rows at once, if there are few shards?
    bool in_vectors;
};

/// The loops at the best level that the machine and TENSORHASH_ISA allow.
RouteLoops const& route_loops();

}  // namespace tensorhash::cpu
