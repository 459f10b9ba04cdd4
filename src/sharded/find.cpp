// find over shards, one block of consecutive rows at a time. Any thread may read any shard: each
// groups a block by shard in its cache, looks it up in every shard and writes the answers. With the
// built-in hash there is no pass over the whole batch and no scratch of its size.
#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "cpu/shard_hash.hpp"
#include "runtime/scan.hpp"
#include "sharded/impl.hpp"
#include "table/rows.hpp"

namespace tensorhash {

using backend::Bytes;
using map::CheckedBatch;

namespace {

/// Enough rows to keep the prefetch pipeline of every shard busy, few enough for the L2 cache.
constexpr std::size_t kBlockRows = 8192;

/// One thread's memory for a block.
struct BlockScratch {
    explicit BlockScratch(std::size_t key_bytes) : keys(kBlockRows * key_bytes) {}

    std::array<std::int32_t, kBlockRows> shard;
    std::array<std::uint32_t, kBlockRows> place;  // of each row among the rows grouped by shard
    std::array<std::uint32_t, kBlockRows> indices;
    std::array<unsigned char, kBlockRows> mask;
    std::array<std::uint32_t, runtime::kMaxDevices + 1> begins;
    runtime::Block keys;  // grouped
};

/// Groups the keys by `shard`; fills in `place`, `begins` and `keys`.
void group(BlockScratch& block, Bytes keys, std::size_t key_bytes, std::size_t rows,
           std::size_t shards) {
    std::array<std::uint32_t, runtime::kMaxDevices + 1> next{};
    for (std::size_t row = 0; row < rows; ++row) {
        ++next[static_cast<std::size_t>(block.shard[row])];
    }
    runtime::scan(std::span(next).first(shards + 1));
    block.begins = next;
    unsigned char* const to = block.keys.data();
    table::with_width(key_bytes, [&](auto width) {
        for (std::size_t row = 0; row < rows; ++row) {
            std::uint32_t const at = next[static_cast<std::size_t>(block.shard[row])]++;
            block.place[row] = at;
            std::memcpy(to + at * width.bytes(), keys + row * width.bytes(), width.bytes());
        }
    });
}

}  // namespace

ShardedLocated ShardedHashMap::Impl::find(CheckedBatch const& keys) const {
    ShardedLocated out{Tensor::empty(with_rows(keys.rows, {}), Dtype::Int64),
                       Tensor::empty(with_rows(keys.rows, {}), Dtype::Bool)};
    auto* const global = static_cast<std::int64_t*>(out.indices.data());
    auto* const mask = static_cast<unsigned char*>(out.mask.data());
    std::size_t const shards = tables.size();
    std::size_t const bytes = key.bytes();
    bool const hashed = sharded::rule_of(policy) == backend::ShardRule::Hash;
    // The built-in hash is computed per block; any other policy is called once, before the lock.
    Tensor const owners = shards > 1 && !hashed ? shards_of(keys) : Tensor();

    auto const find_in_one = [&](BlockScratch& block, std::size_t at, std::size_t rows) {
        tables[0]->find({keys.data() + at * bytes, rows}, {block.indices.data(), mask + at});
        for (std::size_t row = 0; row < rows; ++row) {
            global[at + row] = static_cast<std::int32_t>(block.indices[row]);
        }
    };
    auto const find_in_several = [&](BlockScratch& block, std::size_t at, std::size_t rows) {
        Bytes const first = keys.data() + at * bytes;
        if (hashed) {
            cpu::hash_shards(first, key, static_cast<int>(shards), 0, rows, block.shard.data());
        } else {
            std::copy_n(static_cast<std::int32_t const*>(owners.data()) + at, rows,
                        block.shard.data());
        }
        group(block, first, bytes, rows, shards);
        for (std::size_t s = 0; s < shards; ++s) {
            std::size_t const begin = block.begins[s];
            tables[s]->find({block.keys.data() + begin * bytes, block.begins[s + 1] - begin},
                            {block.indices.data() + begin, block.mask.data() + begin});
        }
        for (std::size_t row = 0; row < rows; ++row) {
            auto const local = static_cast<std::int32_t>(block.indices[block.place[row]]);
            global[at + row] = local < 0 ? -1 : global_index(block.shard[row], local);
            mask[at + row] = block.mask[block.place[row]];
        }
    };
    map::Reading const guard = reading();
    runtime::for_ranges(keys.rows, runtime::kGrain, [&](std::size_t begin, std::size_t end) {
        BlockScratch block(shards == 1 ? 0 : bytes);
        for (std::size_t at = begin; at < end; at += kBlockRows) {
            std::size_t const rows = std::min(kBlockRows, end - at);
            shards == 1 ? find_in_one(block, at, rows) : find_in_several(block, at, rows);
        }
    });
    return out;
}

}  // namespace tensorhash
