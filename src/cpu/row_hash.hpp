// Hashes and home buckets of a pipeline's rows: eight rows at a time where the level and the keys
// allow it, otherwise row by row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "runtime/inlined.hpp"
#include "tensorhash/step/key.hpp"
#include "tensorhash/step/probe.hpp"

namespace tensorhash::cpu {
inline namespace TH_STEP_NAMESPACE {

/// Rows in any order or of several indices, hashed one by one. `hash_of(row)` says how.
template <class HashOf>
struct RowByRow {
    static constexpr std::size_t kRows = 1;
    HashOf const& hash_of;

    TH_INLINED std::uint64_t hash(std::size_t row) const { return hash_of(row); }
};

/// Where the results of rows that are hashed together go: to adjacent elements.
struct HashedRows {
    std::uint64_t* hashes;
    std::uint32_t* homes;
};

#if defined(TH_SIMD_AVX512)

// How far ahead of their hashes keys are prefetched, in bytes.
inline constexpr std::size_t kKeysAhead = 2048;

using Words8 = std::uint64_t __attribute__((vector_size(64)));
using Halves8 = std::uint32_t __attribute__((vector_size(32)));

inline TH_INLINED Words8 load_words(unsigned char const* at) {
    Words8 words;
    std::memcpy(&words, at, sizeof(words));
    return words;
}

// For eight adjacent rows: the mixed words of narrow keys, or all 64 bits of the hashes of wide
// ones.
inline TH_INLINED Words8 hash_eight(step::Narrow8 const&, step::HashSecret const& secret,
                                    unsigned char const* keys) {
    return step::mix_all(load_words(keys), secret);
}
inline TH_INLINED Words8 hash_eight(step::Narrow4 const&, step::HashSecret const& secret,
                                    unsigned char const* keys) {
    Halves8 halves;
    std::memcpy(&halves, keys, sizeof(halves));
    return step::mix_all(__builtin_convertvector(halves, Words8), secret);
}
inline TH_INLINED Words8 hash_eight(step::Wide12 const&, step::HashSecret const& secret,
                                    unsigned char const* keys) {
    // 24 halves, three per row: the first 16, and those from the eighth on.
    __m512i const low = __m512i(load_words(keys));
    __m512i const high = __m512i(load_words(keys + 32));
    __m512i const words =
        _mm512_setr_epi32(0, 1, 3, 4, 6, 7, 9, 10, 12, 13, 15, 24, 26, 27, 29, 30);
    __m512i const ends = _mm512_setr_epi32(2, 0, 5, 0, 8, 0, 11, 0, 14, 0, 25, 0, 28, 0, 31, 0);
    Words8 const first = Words8(_mm512_permutex2var_epi32(low, words, high));
    Words8 const last = Words8(_mm512_maskz_permutex2var_epi32(0x5555, low, ends, high));
    return step::avalanche_all(step::fold_in_all(Words8{} + secret.start, first, secret) ^ last,
                               secret);
}
inline TH_INLINED Words8 hash_eight(step::Wide16 const&, step::HashSecret const& secret,
                                    unsigned char const* keys) {
    __m512i const low = __m512i(load_words(keys));
    __m512i const high = __m512i(load_words(keys + 64));
    __m512i const even = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
    __m512i const odd = _mm512_setr_epi64(1, 3, 5, 7, 9, 11, 13, 15);
    Words8 const first = Words8(_mm512_permutex2var_epi64(low, even, high));
    Words8 const last = Words8(_mm512_permutex2var_epi64(low, odd, high));
    return step::avalanche_all(step::fold_in_all(Words8{} + secret.start, first, secret) ^ last,
                               secret);
}

template <class Reader>
inline constexpr bool kHasEightRows =
    std::is_same_v<Reader, step::Narrow8> || std::is_same_v<Reader, step::Narrow4> ||
    std::is_same_v<Reader, step::Wide12> || std::is_same_v<Reader, step::Wide16>;

#endif

/// The rows of a batch, of one index.
template <class Index>
class BatchRows {
public:
    using Reader = decltype(Index::reader);
#if defined(TH_SIMD_AVX512)
    static constexpr std::size_t kRows = kHasEightRows<Reader> ? 8 : 1;
#else
    static constexpr std::size_t kRows = 1;
#endif

    TH_INLINED BatchRows(Index const& index, unsigned char const* keys)
        : index_(index), keys_(keys) {}
    TH_INLINED std::uint64_t hash(std::size_t row) const { return index_.hash(keys_, row); }
#if defined(TH_SIMD_AVX512)
    /// Writes kRows elements, of which those from row `end` on mean nothing.
    TH_INLINED void operator()(std::size_t row, std::size_t end, HashedRows const& out) const {
        unsigned char const* keys = keys_ + row * key_bytes();
        // Among prefetches of buckets, the hardware prefetcher often loses the sequence of keys. A
        // prefetch beyond the last key does no harm.
        for (std::size_t line = 0; line < 8 * key_bytes(); line += 64) {
            step::prefetch(keys + kKeysAhead + line);
        }
        unsigned char last[8 * 16];
        if (end - row < 8) [[unlikely]] {
            std::memset(last, 0, sizeof(last));
            std::memcpy(last, keys, (end - row) * key_bytes());
            keys = last;
        }
        Words8 hash = hash_eight(index_.reader, index_.secret, keys);
        if constexpr (!Reader::kNarrow) {
            hash >>= 1;
        }
        // The homes, as in home_of().
        Words8 const bits = Reader::kNarrow ? hash >> 32 : hash & 0xffffffffu;
        Halves8 const homes = __builtin_convertvector(bits * index_.bucket_count >> 32, Halves8);
        std::memcpy(out.hashes, &hash, sizeof(hash));
        std::memcpy(out.homes, &homes, sizeof(homes));
    }

private:
    static constexpr std::size_t key_bytes() {
        return std::is_same_v<Reader, step::Narrow8>   ? 8
               : std::is_same_v<Reader, step::Narrow4> ? 4
               : std::is_same_v<Reader, step::Wide12>  ? 12
                                                       : 16;
    }
#endif

private:
    Index const& index_;
    unsigned char const* const keys_;
};

}  // namespace TH_STEP_NAMESPACE
}  // namespace tensorhash::cpu
