// The table of a StringIndex: strings in one arena, numbered in order of insertion, found through
// open addressing. No lock and no threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "runtime/block_vector.hpp"
#include "strings/string_hash.hpp"

namespace tensorhash::strings {

/// A string of a batch with what the table needs of it.
struct Query {
    std::string_view string;
    Head head;
    std::uint64_t hash;
};

inline constexpr std::uint32_t kNoString = 0xffffffffu;
/// A table holds at most this many strings.
inline constexpr std::size_t kMostStrings = 0x7fffffffu;

class StringTable {
public:
    explicit StringTable(step::HashSecret const& secret) : secret_(secret) {}

    std::size_t size() const noexcept { return entries_.size(); }
    std::size_t bytes() const noexcept { return arena_.size(); }
    std::uint64_t memory() const noexcept;
    step::HashSecret const& secret() const noexcept { return secret_; }

    Query query(std::string_view string) const noexcept { return query(string, head_of(string)); }
    Query query(std::string_view string, Head const& head) const noexcept {
        return {string, head, hash_of(string, head, secret_)};
    }
    /// A string of this table, to look it up in another one with the same secret.
    Query query_of(std::size_t number) const noexcept {
        return {string(number), entries_[number].head, entries_[number].hash};
    }

    /// Fetches the bucket of a string into cache, then the entry that the bucket points at.
    void prefetch_bucket(Query const& query) const noexcept {
        step::prefetch(&buckets_[query.hash & mask_]);
    }
    /// Returns the number of that entry: most likely the string's, if the table has it.
    std::uint32_t prefetch_entry(Query const& query) const noexcept;

    /// The number of the string, or kNoString. Looks at entry `guess` first.
    std::uint32_t find(Query const& query, std::uint32_t guess) const noexcept {
        if (guess < entries_.size() && equals(entries_[guess], query)) [[likely]]
            return guess;
        return find(query);
    }
    std::uint32_t find(Query const& query) const noexcept;
    /// The number of the string; a new one gets the next number. Grows. Throws std::bad_alloc or
    /// ValueError and changes nothing.
    std::uint32_t insert(Query const& query, std::uint32_t guess = kNoString) {
        std::uint32_t const found = find(query, guess);
        return found != kNoString ? found : add(query);
    }

    /// Makes room, so that inserting `strings` more with `bytes` bytes allocates nothing.
    void reserve(std::size_t strings, std::size_t bytes);

    std::string_view string(std::size_t number) const noexcept {
        Entry const& entry = entries_[number];
        return {arena_.data() + entry.begin, entry.size};
    }

private:
    /// One cache line: most lookups read one bucket, one entry and no other memory.
    struct alignas(64) Entry {
        Head head;
        std::uint64_t hash;
        std::uint64_t begin;
        std::uint64_t size;
    };
    static constexpr std::size_t kSlots = 8;
    /// Half of the hash of each string, which is 0 in an empty slot, and its number. Slots fill
    /// from the first to the last, then the next bucket goes on.
    struct alignas(64) Bucket {
        std::uint32_t tags[kSlots];
        std::uint32_t numbers[kSlots];
    };

    static std::uint32_t tag_of(std::uint64_t hash) noexcept {
        auto const tag = static_cast<std::uint32_t>(hash >> 32);
        return tag + (tag == 0);
    }
    static std::uint32_t equal(Bucket const& bucket, std::uint32_t tag) noexcept;
    bool equals(Entry const& entry, Query const& query) const noexcept;
    std::uint32_t add(Query const& query);
    void place(std::uint64_t hash, std::uint32_t number) noexcept;
    void grow_buckets(std::size_t strings);

    step::HashSecret secret_;
    runtime::BlockVector<Bucket> buckets_ = runtime::BlockVector<Bucket>(1);
    std::size_t mask_ = 0;
    runtime::BlockVector<Entry> entries_;
    runtime::BlockVector<char> arena_;
};

// Inline: lookups of a batch run in one loop.

/// Bit i: slot i has this tag.
inline std::uint32_t StringTable::equal(Bucket const& bucket, std::uint32_t tag) noexcept {
#if defined(TH_SIMD_NONE)
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < kSlots; ++i) {
        bits |= static_cast<std::uint32_t>(bucket.tags[i] == tag) << i;
    }
    return bits;
#else
    auto const* const tags = reinterpret_cast<__m128i const*>(bucket.tags);
    __m128i const wanted = _mm_set1_epi32(static_cast<int>(tag));
    __m128i const low = _mm_cmpeq_epi32(_mm_load_si128(tags), wanted);
    __m128i const high = _mm_cmpeq_epi32(_mm_load_si128(tags + 1), wanted);
    __m128i const bytes = _mm_packs_epi16(_mm_packs_epi32(low, high), _mm_setzero_si128());
    return static_cast<std::uint32_t>(_mm_movemask_epi8(bytes));
#endif
}

inline std::uint32_t StringTable::prefetch_entry(Query const& query) const noexcept {
    Bucket const& bucket = buckets_[query.hash & mask_];
    std::uint32_t const same = equal(bucket, tag_of(query.hash));
    // Without a branch: if no slot has the tag, it is the entry of the last slot.
    std::uint32_t const guess = bucket.numbers[step::lowest_bit(same | 1u << (kSlots - 1))];
    step::prefetch(entries_.data() + guess);
    return guess;
}

inline bool StringTable::equals(Entry const& entry, Query const& query) const noexcept {
    std::size_t const size = query.string.size();
    if (entry.size != size || !(entry.head == query.head)) return false;
    return size <= kHeadBytes ||
           std::memcmp(arena_.data() + entry.begin + kHeadBytes, query.string.data() + kHeadBytes,
                       size - kHeadBytes) == 0;
}

inline std::uint32_t StringTable::find(Query const& query) const noexcept {
    std::uint32_t const tag = tag_of(query.hash);
    for (std::size_t at = query.hash & mask_;; at = (at + 1) & mask_) {
        Bucket const& bucket = buckets_[at];
        for (std::uint32_t same = equal(bucket, tag); same != 0; same &= same - 1) {
            std::uint32_t const number = bucket.numbers[step::lowest_bit(same)];
            if (equals(entries_[number], query)) return number;
        }
        if (bucket.tags[kSlots - 1] == 0) return kNoString;
    }
}

}  // namespace tensorhash::strings
