// The words of a string and its hash, with a secret. Plain functions, compiled once per
// instruction-set level.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "tensorhash/step/hash.hpp"

namespace tensorhash::strings {

/// The first 32 bytes of a string, with zeros after its end. The last byte of a shorter string is
/// its size, so that strings that differ only in trailing zeros differ here.
struct Head {
    std::uint64_t words[4] = {};
};

inline constexpr std::size_t kHeadBytes = sizeof(Head);

/// 32 bytes to keep, then 32 to clear: read from the middle, they cut a string at its end.
inline constexpr struct Cut {
    constexpr Cut() {
        for (std::size_t i = 0; i < kHeadBytes; ++i) bytes[i] = 0xff;
    }
    alignas(64) unsigned char bytes[2 * kHeadBytes] = {};
} kCut;

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

/// The same of a string behind which memory can be read, up to 32 bytes from `at`. No branch: sizes
/// are hard to predict.
TH_STEP Head head_of_readable(char const* at, std::size_t size) noexcept {
    Head head;
    Head keep;
    std::memcpy(&head, at, sizeof(head));
    std::memcpy(&keep, kCut.bytes + kHeadBytes - (size < kHeadBytes ? size : kHeadBytes),
                sizeof(keep));
    for (std::size_t i = 0; i < 4; ++i) head.words[i] &= keep.words[i];
    head.words[3] |= size_byte(size);
    return head;
}

/// The head has the size of a short string; that of a long one goes in first.
TH_STEP std::uint64_t hash_of(std::string_view string, Head const& head,
                              step::HashSecret const& secret) noexcept {
    using step::fold_in;
    std::uint64_t hash = secret.start;
    if (string.size() >= kHeadBytes) [[unlikely]]
        hash = fold_in(hash, string.size(), secret);
    for (std::size_t i = 0; i < 3; ++i) hash = fold_in(hash, head.words[i], secret);
    std::uint64_t last = head.words[3];
    for (std::size_t at = kHeadBytes; at < string.size(); at += 8) {
        hash = fold_in(hash, last, secret);
        std::size_t const left = string.size() - at;
        last = load_up_to_8(string.data() + at, left < 8 ? left : 8);
    }
    return step::end_with(hash, last, secret);
}

}  // namespace TH_STEP_NAMESPACE
}  // namespace tensorhash::strings
