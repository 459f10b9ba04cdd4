// The loop of shard_engine.hpp, compiled once per instruction-set level; see engine.cpp.
#include "cpu/shard_engine.hpp"

#include "cpu/level_name.hpp"
#include "cpu/pipeline.hpp"
#include "cpu/readers.hpp"
#include "tensorhash/step/find.hpp"

namespace tensorhash::cpu {
inline namespace TH_STEP_NAMESPACE {
namespace {

using namespace step;

// All tickets are of the table: no row of the batch claims a slot.
constexpr std::uint32_t kAboveAllEntries = 0x7fffffffu;

template <class Reader>
void find_rows(ShardedRows const& given, std::size_t begin, std::size_t end) {
    using Index = typename IndexOf<Reader, Exclusive>::type;
    // A copy stays in registers: stores to the mask cannot change it.
    ShardedRows const rows = given;
    BatchView const batch{rows.keys, kAboveAllEntries, nullptr, nullptr, nullptr};
    auto const index_at = [&](std::size_t row)
                              TH_INLINED { return Index(rows.indices[rows.shards[row]]); };
    auto const answer = [&](std::size_t row, std::uint32_t buf_index) TH_INLINED {
        std::int64_t const global = std::int64_t{rows.shards[row]} << 32 | buf_index;
        rows.global[row] = buf_index != kNotFound ? global : -1;
        rows.mask[row] = buf_index != kNotFound ? 1 : 0;
    };
    auto const hash_of = [&](std::size_t row)
                             TH_INLINED { return index_at(row).hash(batch.keys, row); };
    RowByRow const hash_rows{hash_of};
    auto const finish = [&](std::size_t row, std::uint64_t hash) TH_INLINED {
        answer(row, find(index_at(row), hash, batch, row).buf_index);
    };
    if constexpr (Reader::kNarrow) {
        auto const step = [&](std::size_t row, std::uint64_t hash, std::uint64_t home) TH_INLINED {
            Match at;
            bool const known = find_at_home(index_at(row), hash, home, at);
            answer(row, at.buf_index);
            return known;
        };
        auto const half_way = [](std::size_t, std::uint64_t, std::uint64_t) {};
        pipeline_of<false>(index_at, begin, end, RowWork{hash_rows, half_way, step, finish});
    } else {
        // The row's result holds the guess until it is confirmed.
        auto const half_way =
            [&](std::size_t row, std::uint64_t hash, std::uint64_t home)
                TH_INLINED { rows.global[row] = guess(index_at(row), hash, home).buf_index; };
        auto const step = [&](std::size_t row, std::uint64_t, std::uint64_t) TH_INLINED {
            auto const guessed = static_cast<std::uint32_t>(rows.global[row]);
            bool const known = confirm(index_at(row), guessed, batch, row);
            answer(row, guessed);
            return known;
        };
        pipeline_of<false>(index_at, begin, end, RowWork{hash_rows, half_way, step, finish});
    }
}

}  // namespace
}  // namespace TH_STEP_NAMESPACE

/// The loop of this level; dispatch.cpp declares one such function per level.
FindInShards TH_LEVEL_NAME(find_in_shards_)(std::uint32_t key_bytes, std::uint32_t float_bytes);
FindInShards TH_LEVEL_NAME(find_in_shards_)(std::uint32_t key_bytes, std::uint32_t float_bytes) {
    return with_reader(key_bytes, float_bytes, [](auto reader) -> FindInShards {
        return find_rows<typename decltype(reader)::type>;
    });
}

}  // namespace tensorhash::cpu
