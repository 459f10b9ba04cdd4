// Asking the policy which shard each row belongs to.
#pragma once

#include <cstddef>

#include "map/arguments.hpp"
#include "tensorhash/sharded/policy.hpp"

namespace tensorhash::sharded {

/// int32 [N]: each row's shard. Asks the policy, and throws ValueError, naming the row, if an answer is no shard.
Tensor shards_of(map::Batch const& keys, Element const& element, ShardPolicy const& policy,
                 std::size_t shards);

/// Whether it is hash_policy().
bool is_hash_policy(ShardPolicy const& policy) noexcept;

}  // namespace tensorhash::sharded
