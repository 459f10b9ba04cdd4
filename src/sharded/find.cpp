// find over shards: each row asks the index of its shard, in the caller's order. Any thread may
// read any shard. With the built-in hash there is no pass over the whole batch and no scratch of
// its size.
#include <algorithm>
#include <array>
#include <vector>

#include "cpu/shard_engine.hpp"
#include "cpu/shard_hash.hpp"
#include "sharded/impl.hpp"

namespace tensorhash {

using map::CheckedBatch;

namespace {

/// Shards are computed for this many rows at a time: the lookups read them from the L1 cache.
constexpr std::size_t kBlockRows = 4096;

std::vector<step::IndexView> indices_of(sharded::Tables const& tables, step::KeyFormat format) {
    std::vector<step::IndexView> indices;
    for (auto const& table : tables) {
        backend::LookupMemory const memory = table->lookup_memory();
        indices.push_back({memory.buckets, memory.bucket_count, memory.keys, format.bytes,
                           format.float_bytes, step::secret_of(memory.seed)});
    }
    return indices;
}

}  // namespace

ShardedLocated ShardedHashMap::Impl::find(CheckedBatch const& keys) const {
    ShardedLocated out{Tensor::empty(with_rows(keys.rows, {}), Dtype::Int64),
                       Tensor::empty(with_rows(keys.rows, {}), Dtype::Bool)};
    auto* const global = static_cast<std::int64_t*>(out.indices.data());
    auto* const mask = static_cast<unsigned char*>(out.mask.data());
    step::KeyFormat const format = table::format_of(key);
    auto const shards = static_cast<int>(tables.size());
    // Shards by the built-in hash are computed per block; any other policy is called once, before
    // the lock.
    bool const is_hashed = shards > 1 && sharded::rule_of(policy) == backend::ShardRule::Hash;
    bool const is_given = shards > 1 && !is_hashed;
    Tensor const owners = is_given ? shards_of(keys) : Tensor();
    auto const* const owner = static_cast<std::int32_t const*>(owners.data());
    cpu::FindInShards const find_rows = cpu::find_in_shards(format.bytes, format.float_bytes);

    map::Reading const guard = reading();
    std::vector<step::IndexView> const indices = indices_of(tables, format);
    runtime::for_ranges(keys.rows, runtime::kGrain, [&](std::size_t begin, std::size_t end) {
        std::array<std::int32_t, kBlockRows> block{};  // zeros are the shards of a single one
        for (std::size_t at = begin; at < end; at += kBlockRows) {
            std::size_t const rows = std::min(kBlockRows, end - at);
            unsigned char const* const first = keys.data() + at * format.bytes;
            if (is_hashed) {
                cpu::hash_shards(first, key, shards, 0, rows, block.data());
            }
            auto const* const shard = is_given ? owner + at : block.data();
            find_rows({indices.data(), shard, first, global + at, mask + at}, 0, rows);
        }
    });
    return out;
}

}  // namespace tensorhash
