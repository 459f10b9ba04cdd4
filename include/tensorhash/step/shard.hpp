// The rules of hash_policy() and mod_policy(): the shard of one key. Files name these rules, so
// they never change, even if tables change their hash.
#pragma once

#include "tensorhash/step/hash.hpp"
#include "tensorhash/step/key.hpp"

namespace tensorhash::step {
inline namespace TH_STEP_NAMESPACE {

/// Starts with the key's width, then mixes in its words one by one. The last word is zero-extended.
template <class Reader>
TH_STEP std::uint64_t shard_hash(Reader const& reader, std::uint32_t bytes,
                                 unsigned char const* keys, std::size_t row) {
    std::uint64_t hash = bytes;
    if constexpr (Reader::kNarrow) {
        return mix_in(hash, reader.word(keys, row));
    } else if constexpr (requires { Reader::kBytes; }) {
        static_assert(Reader::kBytes == 12 || Reader::kBytes == 16);
        unsigned char const* const key = keys + row * Reader::kBytes;
        hash = mix_in(hash, load_word<Reader::kAlign>(key));
        return mix_in(hash, Reader::kBytes == 16 ? load_word<Reader::kAlign>(key + 8)
                                                 : load_half<Reader::kAlign>(key + 8));
    } else {
        unsigned char const* const key = keys + row * bytes;
        for (std::uint32_t at = 0; at < bytes; at += 8) {
            hash = mix_in(hash, reader.word_at(key, at));
        }
        return hash;
    }
}

inline constexpr std::uint64_t kShardSeed = 0xa0761d6478bd642full;  // any odd constant would do

TH_STEP std::uint32_t shard_of_hash(std::uint64_t hash, std::uint32_t shards) {
    return static_cast<std::uint32_t>((mix(hash ^ kShardSeed) >> 32) * shards >> 32);
}

/// Key mod shards, never negative. `word` is the key, zero-extended from `bytes` bytes.
TH_STEP std::uint32_t shard_of_integer(std::uint64_t word, std::uint32_t bytes, bool is_signed,
                                       std::uint32_t shards) {
    if (!is_signed) {
        return static_cast<std::uint32_t>(word % shards);
    }
    std::uint32_t const unused = 64 - 8 * bytes;
    auto const key = static_cast<std::int64_t>(word << unused) >> unused;
    std::int64_t const rest = key % static_cast<std::int64_t>(shards);
    return static_cast<std::uint32_t>(rest < 0 ? rest + shards : rest);
}

}  // namespace TH_STEP_NAMESPACE
}  // namespace tensorhash::step
