// Calls the policy for the shard of each row.
#pragma once

#include <cstddef>

#include "map/arguments.hpp"
#include "tensorhash/sharded/policy.hpp"

namespace tensorhash::sharded {

/// int32 [N]: the shard of each row. Throws ValueError that names the row if the policy returns
/// an invalid shard.
Tensor shards_of(map::CheckedBatch const& keys, Element const& element, ShardPolicy const& policy,
                 std::size_t shards);

/// Whether this is hash_policy().
bool is_hash_policy(ShardPolicy const& policy) noexcept;

}  // namespace tensorhash::sharded
