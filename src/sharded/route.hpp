// Calls the policy for the shard of each row.
#pragma once

#include <cstddef>

#include "backend/routed.hpp"
#include "map/arguments.hpp"
#include "tensorhash/sharded/policy.hpp"

namespace tensorhash::sharded {

/// int32 [N]: the shard of each row. Throws ValueError that names the row if the policy returns
/// an invalid shard.
Tensor shards_of(map::CheckedBatch const& keys, Element const& element, ShardPolicy const& policy,
                 std::size_t shards);

/// Given, unless this is hash_policy() or mod_policy().
backend::ShardRule rule_of(ShardPolicy const& policy) noexcept;

}  // namespace tensorhash::sharded
