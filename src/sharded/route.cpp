// Calls the policy and checks the shards that it returns.
#include "sharded/route.hpp"

#include <algorithm>
#include <atomic>
#include <span>
#include <string>

#include "runtime/parallel.hpp"
#include "tensor/shapes.hpp"
#include "tensorhash/error.hpp"
#include "tensorhash/step/key.hpp"

namespace tensorhash::sharded {
namespace {

/// Float keys without -0 and with a single NaN, so that a policy cannot separate equal keys.
Tensor canonical(Tensor const& keys) {
    if (keys.dtype() != Dtype::Float32 && keys.dtype() != Dtype::Float64) {
        return keys;
    }
    Tensor copy = keys.clone();
    auto const elements = static_cast<std::size_t>(copy.size());
    bool const wide = copy.dtype() == Dtype::Float64;
    runtime::for_ranges(elements, 1 << 16, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            if (wide) {
                auto* const bits = static_cast<std::uint64_t*>(copy.data()) + i;
                *bits = step::canonical_double(*bits);
            } else {
                auto* const bits = static_cast<std::uint32_t*>(copy.data()) + i;
                *bits = step::canonical_float(*bits);
            }
        }
    });
    return copy;
}

/// Throws ValueError that names the first row with an invalid shard.
void require_shards(std::span<std::int32_t const> shard, std::size_t shards) {
    auto const is_wrong = [shards](std::int32_t at) {
        return static_cast<std::uint32_t>(at) >= shards;
    };
    std::atomic<bool> wrong{false};
    runtime::for_ranges(shard.size(), runtime::kGrain, [&](std::size_t begin, std::size_t end) {
        // The largest shard of the range, without a branch per row. Negative values are large as
        // unsigned.
        std::uint32_t most = 0;
        for (std::size_t row = begin; row < end; ++row) {
            most = std::max(most, static_cast<std::uint32_t>(shard[row]));
        }
        if (most >= shards) {
            wrong.store(true, std::memory_order_relaxed);
        }
    });
    if (!wrong.load(std::memory_order_relaxed)) {
        return;
    }
    auto const first = std::find_if(shard.begin(), shard.end(), is_wrong);
    throw ValueError("policy: expected a shard from 0 to " + std::to_string(shards - 1) + ", got " +
                     std::to_string(*first) + " for row " + std::to_string(first - shard.begin()));
}

}  // namespace

Tensor shards_of(map::CheckedBatch const& keys, Element const& element, ShardPolicy const& policy,
                 std::size_t shards) {
    Tensor out = Tensor::zeros({static_cast<std::int64_t>(keys.rows)}, Dtype::Int32);
    auto const shard = out.as_mutable<std::int32_t>();
    Tensor const rows = canonical(keys.tensor.reshape(with_rows(keys.rows, element.shape)));
    policy.route(rows.as_read_only(), static_cast<int>(shards), shard);
    require_shards(shard, shards);
    return out;
}

}  // namespace tensorhash::sharded
