// How a string is found in the memory of a StringTable. Plain types and functions, compiled once
// per instruction-set level.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "strings/string_hash.hpp"

namespace tensorhash::strings {

inline constexpr std::uint32_t kNoString = 0xffffffffu;

/// A string with what the table needs of it.
struct Query {
    std::string_view string;
    Head head;
    std::uint64_t hash;
};

/// One cache line: most lookups read one bucket, one entry and no other memory.
struct alignas(64) Entry {
    Head head;
    std::uint64_t hash;
    std::uint64_t begin;  // in the arena
    std::uint64_t size;
};

inline constexpr std::size_t kSlots = 8;

/// Half of the hash of each string, made odd, and its number. In an empty slot both are 0. Slots
/// fill from the first to the last, then the next bucket goes on.
struct alignas(64) Bucket {
    std::uint32_t tags[kSlots];
    std::uint32_t numbers[kSlots];
};

/// What a lookup reads of a table.
struct StringTableView {
    Bucket const* buckets;
    std::size_t mask;
    Entry const* entries;
    std::size_t size;
    char const* arena;
};

inline namespace TH_STEP_NAMESPACE {

TH_STEP std::uint32_t tag_of(std::uint64_t hash) noexcept {
    return static_cast<std::uint32_t>(hash >> 32) | 1;
}

/// Bit i: slot i has this tag.
TH_STEP std::uint32_t slots_with(Bucket const& bucket, std::uint32_t tag) noexcept {
#if defined(TH_SIMD_AVX2)
    __m256i const tags = _mm256_load_si256(reinterpret_cast<__m256i const*>(bucket.tags));
    __m256i const same = _mm256_cmpeq_epi32(tags, _mm256_set1_epi32(static_cast<int>(tag)));
    return static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(same)));
#elif defined(TH_SIMD_SSE41)
    auto const* const tags = reinterpret_cast<__m128i const*>(bucket.tags);
    __m128i const wanted = _mm_set1_epi32(static_cast<int>(tag));
    __m128i const low = _mm_cmpeq_epi32(_mm_load_si128(tags), wanted);
    __m128i const high = _mm_cmpeq_epi32(_mm_load_si128(tags + 1), wanted);
    __m128i const bytes = _mm_packs_epi16(_mm_packs_epi32(low, high), _mm_setzero_si128());
    return static_cast<std::uint32_t>(_mm_movemask_epi8(bytes));
#else
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < kSlots; ++i) {
        bits |= static_cast<std::uint32_t>(bucket.tags[i] == tag) << i;
    }
    return bits;
#endif
}

TH_STEP void prefetch_bucket(StringTableView const& table, std::uint64_t hash) noexcept {
    step::prefetch(&table.buckets[hash & table.mask]);
}

/// Fetches the entry that the bucket points at into cache. Returns its number: most likely the
/// string's, if the table has it.
TH_STEP std::uint32_t prefetch_entry(StringTableView const& table, std::uint64_t hash) noexcept {
    Bucket const& bucket = table.buckets[hash & table.mask];
    std::uint32_t const same = slots_with(bucket, tag_of(hash));
    // Without a branch: if no slot has the tag, it is the entry of the last slot.
    std::uint32_t const guess = bucket.numbers[step::lowest_bit(same | 1u << (kSlots - 1))];
    step::prefetch(table.entries + guess);
    return guess;
}

/// Does the table have this string under this number?
TH_STEP bool holds(StringTableView const& table, std::uint32_t number, std::string_view string,
                   Head const& head) noexcept {
    Entry const& entry = table.entries[number];
    if (entry.size != string.size() || !equals(entry.head, head)) return false;
    return string.size() <= kHeadBytes ||
           std::memcmp(table.arena + entry.begin + kHeadBytes, string.data() + kHeadBytes,
                       string.size() - kHeadBytes) == 0;
}

/// The number of the string, or kNoString.
TH_STEP std::uint32_t find(StringTableView const& table, Query const& query) noexcept {
    std::uint32_t const tag = tag_of(query.hash);
    for (std::size_t at = query.hash & table.mask;; at = (at + 1) & table.mask) {
        Bucket const& bucket = table.buckets[at];
        for (std::uint32_t same = slots_with(bucket, tag); same != 0; same &= same - 1) {
            std::uint32_t const number = bucket.numbers[step::lowest_bit(same)];
            if (holds(table, number, query.string, query.head)) return number;
        }
        if (bucket.tags[kSlots - 1] == 0) return kNoString;
    }
}

}  // namespace TH_STEP_NAMESPACE
}  // namespace tensorhash::strings
