// The words of a string and its hash, with a secret. Plain functions, compiled once per
// instruction-set level.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "tensorhash/step/hash.hpp"
#include "tensorhash/strings.hpp"

namespace tensorhash::strings {

/// The first 32 bytes of a string, with zeros after its end. The last byte of a shorter string is
/// its size, so that strings that differ only in trailing zeros differ here.
struct alignas(32) Head {
    std::uint64_t words[4] = {};
};

inline constexpr std::size_t kHeadBytes = sizeof(Head);
inline constexpr std::size_t kBefore = StringSource::kBefore;

/// The secret numbers of a table.
struct StringSecret {
    alignas(32) std::uint32_t keys[8];
    step::HashSecret words;
};

inline StringSecret string_secret_of(std::uint64_t seed) {
    StringSecret secret{{}, step::secret_of(seed)};
    for (std::uint64_t i = 0; i < 8; ++i) {
        secret.keys[i] =
            static_cast<std::uint32_t>(step::mix(seed + (i + 3) * step::kGolden) >> 32);
    }
    return secret;
}

/// Positions 0 to 15, then numbers that stand for zero: read from `n` on, they move 16 bytes by n
/// bytes to the front.
inline constexpr struct Moves {
    constexpr Moves() {
        for (unsigned i = 0; i < sizeof(bytes); ++i) {
            bytes[i] = static_cast<unsigned char>(i < kBefore ? i : 0x80);
        }
    }
    alignas(64) unsigned char bytes[3 * kBefore] = {};
} kMoves;

/// By size: a head that holds the size and nothing else.
inline constexpr struct SizeHeads {
    constexpr SizeHeads() {
        for (std::uint64_t size = 0; size < kHeadBytes; ++size) heads[size].words[3] = size << 56;
    }
    Head heads[kHeadBytes + 1] = {};
} kSizeHeads;

inline namespace TH_STEP_NAMESPACE {

TH_STEP bool equals(Head const& a, Head const& b) noexcept {
#if defined(TH_SIMD_AVX2)
    __m256i const different =
        _mm256_xor_si256(_mm256_loadu_si256(reinterpret_cast<__m256i const*>(a.words)),
                         _mm256_loadu_si256(reinterpret_cast<__m256i const*>(b.words)));
    return _mm256_testz_si256(different, different) != 0;
#else
    return ((a.words[0] ^ b.words[0]) | (a.words[1] ^ b.words[1]) | (a.words[2] ^ b.words[2]) |
            (a.words[3] ^ b.words[3])) == 0;
#endif
}

template <class Word>
TH_STEP std::uint64_t load(char const* at) noexcept {
    Word word;
    std::memcpy(&word, at, sizeof(word));
    return word;
}

/// 1 to 8 bytes. Two loads overlap instead of a loop over bytes.
TH_STEP std::uint64_t load_up_to_8(char const* at, std::size_t size) noexcept {
    if (size == 8) return load<std::uint64_t>(at);
    if (size >= 4) {
        return load<std::uint32_t>(at) | load<std::uint32_t>(at + size - 4) << (8 * (size - 4));
    }
    std::uint64_t word = static_cast<unsigned char>(at[0]);
    if (size >= 2) {
        word |= load<std::uint16_t>(at + size - 2) << (8 * (size - 2));
    }
    return word;
}

TH_STEP std::uint64_t size_byte(std::size_t size) noexcept {
    return size < kHeadBytes ? std::uint64_t{size} << 56 : 0;
}

TH_STEP Head head_of(std::string_view string) noexcept {
    Head head;
    if (!string.empty()) {
        std::memcpy(&head, string.data(), string.size() < kHeadBytes ? string.size() : kHeadBytes);
    }
    head.words[3] |= size_byte(string.size());
    return head;
}

/// The same of a string for which StringSource::is_preceded() holds. No branch, because sizes are
/// hard to predict: the last 16 bytes of each half are read and moved to the front.
TH_STEP Head head_of_preceded(char const* at, std::size_t size) noexcept {
    std::size_t const kept = size < kHeadBytes ? size : kHeadBytes;
    Head head;
#if defined(TH_SIMD_AVX2) || defined(TH_SIMD_SSE41)
    auto const half = [at](std::size_t end, std::size_t moved) {
        return _mm_shuffle_epi8(
            _mm_loadu_si128(reinterpret_cast<__m128i const*>(at + end - kBefore)),
            _mm_loadu_si128(reinterpret_cast<__m128i const*>(kMoves.bytes + moved)));
    };
    std::size_t const first = size < kBefore ? size : kBefore;
    __m128i const low = half(first, kBefore - first);
    __m128i const high = half(kept, 2 * kBefore - kept);
    auto const* const sizes = reinterpret_cast<__m128i const*>(&kSizeHeads.heads[kept]);
    __m128i const sized = _mm_or_si128(high, _mm_load_si128(sizes + 1));
    auto* const out = reinterpret_cast<__m128i*>(&head);
#if defined(TH_SIMD_AVX2)
    // One store: the next load takes all 32 bytes, which it cannot take from two stores.
    _mm256_store_si256(reinterpret_cast<__m256i*>(out), _mm256_set_m128i(sized, low));
#else
    _mm_store_si128(out, low);
    _mm_store_si128(out + 1, sized);
#endif
#else
    for (std::size_t i = 0; i < 4; ++i) {
        std::size_t const begin = 8 * i;
        std::size_t const end = kept < begin + 8 ? kept : begin + 8;
        std::uint64_t const word = load<std::uint64_t>(at + end - 8);
        head.words[i] = end > begin ? word >> 8 * (begin + 8 - end) : 0;
    }
    head.words[3] |= size_byte(size);
#endif
    return head;
}

/// UMAC's hash NH: each word adds the product of its halves, after a secret key was added to each
/// half. For any two heads, the sums are equal for at most 2^-32 of all keys.
TH_STEP std::uint64_t sum_of(Head const& head, StringSecret const& secret) noexcept {
#if defined(TH_SIMD_AVX2)
    __m256i const added =
        _mm256_add_epi32(_mm256_load_si256(reinterpret_cast<__m256i const*>(head.words)),
                         _mm256_load_si256(reinterpret_cast<__m256i const*>(secret.keys)));
    __m256i const products = _mm256_mul_epu32(added, _mm256_srli_epi64(added, 32));
    __m128i const two =
        _mm_add_epi64(_mm256_castsi256_si128(products), _mm256_extracti128_si256(products, 1));
    return static_cast<std::uint64_t>(_mm_cvtsi128_si64(two)) +
           static_cast<std::uint64_t>(_mm_extract_epi64(two, 1));
#elif defined(TH_SIMD_SSE41)
    auto const products = [&](std::size_t i) {
        __m128i const added =
            _mm_add_epi32(_mm_load_si128(reinterpret_cast<__m128i const*>(head.words) + i),
                          _mm_load_si128(reinterpret_cast<__m128i const*>(secret.keys) + i));
        return _mm_mul_epu32(added, _mm_srli_epi64(added, 32));
    };
    __m128i const two = _mm_add_epi64(products(0), products(1));
    return static_cast<std::uint64_t>(_mm_cvtsi128_si64(two)) +
           static_cast<std::uint64_t>(_mm_extract_epi64(two, 1));
#else
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < 4; ++i) {
        auto const low = static_cast<std::uint32_t>(head.words[i]) + secret.keys[2 * i];
        auto const high = static_cast<std::uint32_t>(head.words[i] >> 32) + secret.keys[2 * i + 1];
        sum += std::uint64_t{low} * high;
    }
    return sum;
#endif
}

/// Adds the size and the bytes behind the head.
TH_STEP std::uint64_t fold_in_rest(std::uint64_t hash, std::string_view string,
                                   StringSecret const& secret) noexcept {
    hash = step::fold_in(hash, string.size(), secret.words);
    for (std::size_t at = kHeadBytes; at < string.size(); at += 8) {
        std::size_t const left = string.size() - at;
        hash = step::fold_in(hash, load_up_to_8(string.data() + at, left < 8 ? left : 8),
                             secret.words);
    }
    return hash;
}

/// The head has the size of a short string; that of a long one goes in with its rest.
TH_STEP std::uint64_t hash_of(std::string_view string, Head const& head,
                              StringSecret const& secret) noexcept {
    std::uint64_t hash = sum_of(head, secret);
    if (string.size() >= kHeadBytes) [[unlikely]]
        hash = fold_in_rest(hash, string, secret);
    // Spreads the sum over all bits: tags take the high half, buckets the low one.
    hash = (hash ^ hash >> 32) * secret.words.first;
    return hash ^ hash >> 32;
}

}  // namespace TH_STEP_NAMESPACE
}  // namespace tensorhash::strings
