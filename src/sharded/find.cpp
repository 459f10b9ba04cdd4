// find over shards. Any thread may read any shard. With the built-in hash there is no pass over the
// whole batch and no scratch of its size.
#include <algorithm>
#include <numeric>
#include <vector>

#include "cpu/route_engine.hpp"
#include "cpu/shard_engine.hpp"
#include "cpu/shard_hash.hpp"
#include "runtime/block_vector.hpp"
#include "sharded/impl.hpp"
#include "table/route.hpp"

namespace tensorhash {

using map::CheckedBatch;

namespace {

/// All tickets are of the tables: no row of the batch claims a slot.
constexpr std::uint32_t kAboveAllEntries = 0x7fffffffu;

/// Rows are looked up a block at a time: their shards, keys and answers stay in the cache.
constexpr std::size_t kBlockRows = 8192;

std::vector<step::IndexView> indices_of(sharded::Tables const& tables, step::KeyFormat format) {
    std::vector<step::IndexView> indices;
    for (auto const& table : tables) {
        backend::LookupMemory const memory = table->lookup_memory();
        indices.push_back({memory.buckets, memory.bucket_count, memory.keys, format.bytes,
                           format.float_bytes, step::secret_of(memory.seed)});
    }
    return indices;
}

/// Where the answers of some rows go.
struct Globals {
    std::int64_t* indices;
    unsigned char* mask;
};

/// The tables of a lookup.
class Shards {
public:
    Shards(sharded::Tables const& tables, step::KeyFormat format)
        : format_(format), indices_(indices_of(tables, format)),
          loops_(cpu::index_loops(format.bytes, format.float_bytes)),
          find_rows_(cpu::find_in_shards(format.bytes, format.float_bytes)) {}

    /// Pays off if grouping takes less time than asking another index with each row.
    bool grouping_pays() const noexcept {
        return format_.bytes == 8 && count() <= cpu::kFewShards && cpu::route_loops().in_vectors;
    }
    void find(std::size_t shard, backend::Bytes keys, std::size_t rows,
              backend::Answers const& out) const {
        step::BatchView const batch{keys, kAboveAllEntries, nullptr, out.indices, out.mask};
        loops_.find(indices_[shard], batch, 0, rows);
    }
    /// Each row asks the index of its shard.
    void find_ungrouped(std::int32_t const* owners, backend::Bytes keys, std::size_t rows,
                        Globals const& out) const {
        find_rows_({indices_.data(), owners, keys, out.indices, out.mask}, 0, rows);
    }
    std::uint32_t count() const noexcept { return static_cast<std::uint32_t>(indices_.size()); }

private:
    step::KeyFormat format_;
    std::vector<step::IndexView> indices_;
    cpu::IndexLoops const& loops_;
    cpu::FindInShards find_rows_;
};

/// Memory for the lookups of one thread.
class BlockLookup {
public:
    BlockLookup(std::size_t rows, bool grouped)
        : owners_(rows), found_(rows), keys_(grouped ? rows : 0), mask_(grouped ? rows : 0) {}

    std::int32_t* owners() noexcept { return owners_.data(); }

    /// Groups the rows by shard and looks each group up in its index. `owners` are the shards.
    void find_grouped(Shards const& shards, std::int32_t const* owners, backend::Bytes keys,
                      std::size_t rows, Globals const& out) {
        cpu::RouteLoops const& loops = cpu::route_loops();
        table::Places next{};
        cpu::ShardedChunk const chunk{owners, 0, rows, shards.count(), next.data()};
        loops.count(chunk);
        table::Places first{};
        std::exclusive_scan(next.begin(), next.begin() + shards.count(), first.begin(), 0u);
        next = first;
        auto* const grouped = reinterpret_cast<unsigned char*>(keys_.data());
        loops.group_words(chunk, keys, grouped);
        for (std::uint32_t shard = 0; shard < shards.count(); ++shard) {
            std::uint32_t const begin = first[shard];
            shards.find(shard, grouped + std::size_t{begin} * 8, next[shard] - begin,
                        {found_.data() + begin, mask_.data() + begin});
        }
        next = first;
        loops.ungroup_found(chunk, found_.data(), out.indices, out.mask);
    }
    /// A single shard has the rows as they are.
    void find_in_one(Shards const& shards, backend::Bytes keys, std::size_t rows,
                     Globals const& out) {
        shards.find(0, keys, rows, {found_.data(), out.mask});
        std::transform(found_.begin(), found_.begin() + static_cast<std::ptrdiff_t>(rows),
                       out.indices,
                       [](std::uint32_t local) { return static_cast<std::int32_t>(local); });
    }

private:
    runtime::UnclearedVector<std::int32_t> owners_;
    runtime::UnclearedVector<std::uint32_t> found_;
    runtime::UnclearedVector<std::uint64_t> keys_;
    runtime::UnclearedVector<unsigned char> mask_;
};

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

    map::Reading const guard = reading();
    Shards const asked(tables, format);
    bool const grouped = shards > 1 && asked.grouping_pays();
    runtime::for_ranges(keys.rows, runtime::kGrain, [&](std::size_t begin, std::size_t end) {
        BlockLookup block(std::min(kBlockRows, end - begin), grouped);
        for (std::size_t at = begin; at < end; at += kBlockRows) {
            std::size_t const rows = std::min(kBlockRows, end - at);
            backend::Bytes const first = keys.data() + at * format.bytes;
            Globals const answers{global + at, mask + at};
            if (shards == 1) {
                block.find_in_one(asked, first, rows, answers);
                continue;
            }
            if (is_hashed) {
                cpu::hash_shards(first, key, shards, 0, rows, block.owners());
            }
            auto const* const of_rows = is_given ? owner + at : block.owners();
            if (grouped) {
                block.find_grouped(asked, of_rows, first, rows, answers);
            } else {
                asked.find_ungrouped(of_rows, first, rows, answers);
            }
        }
    });
    return out;
}

}  // namespace tensorhash
