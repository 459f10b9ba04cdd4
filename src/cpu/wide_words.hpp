// Readers of wide keys for the CPU only. Devices use WideAny, which loads as the alignment allows.
#pragma once

#include "tensorhash/step/key.hpp"

namespace tensorhash::step {
inline namespace TH_STEP_NAMESPACE {

/// Multiples of eight bytes above 16, read without a test per word. Same hash as WideAny.
struct WideWords {
    static constexpr bool kNarrow = false;
    static constexpr std::size_t kAlign = 8;
    static constexpr bool kCrossesCacheLines = true;
    std::size_t width;
    TH_STEP explicit WideWords(KeyFormat f) : width(f.bytes) {}
    TH_STEP std::size_t bytes() const { return width; }
    TH_STEP std::uint64_t hash(unsigned char const* key, HashSecret const& secret) const {
        std::uint64_t h = secret.start;
        std::size_t const last = width - 8;
        for (std::size_t offset = 0; offset < last; offset += 8) {
            h = fold_in(h, load_word<kAlign>(key + offset), secret);
        }
        return end_with(h, load_word<kAlign>(key + last), secret);
    }
    TH_STEP bool equal(unsigned char const* a, unsigned char const* b) const {
        std::uint64_t differ = 0;
        for (std::size_t offset = 0; offset < width; offset += 8) {
            differ |= load_word<kAlign>(a + offset) ^ load_word<kAlign>(b + offset);
        }
        return differ == 0;
    }
};

/// Keys of 64 bytes: a key of the key buffer is one cache line. Same hash as WideAny.
struct Wide64 {
    static constexpr bool kNarrow = false;
    static constexpr std::size_t kAlign = 8;
    static constexpr bool kCrossesCacheLines = false;
    TH_STEP explicit Wide64(KeyFormat) {}
    TH_STEP std::size_t bytes() const { return 64; }
    TH_STEP std::uint64_t hash(unsigned char const* key, HashSecret const& secret) const {
        std::uint64_t h = secret.start;
#pragma GCC unroll 7
        for (std::size_t offset = 0; offset < 56; offset += 8) {
            h = fold_in(h, load_word<kAlign>(key + offset), secret);
        }
        return end_with(h, load_word<kAlign>(key + 56), secret);
    }
    TH_STEP bool equal(unsigned char const* a, unsigned char const* b) const {
#if defined(TH_SIMD_AVX2)
        auto const differ = [&](std::size_t offset) {
            return _mm256_xor_si256(
                _mm256_loadu_si256(reinterpret_cast<__m256i const*>(a + offset)),
                _mm256_loadu_si256(reinterpret_cast<__m256i const*>(b + offset)));
        };
        __m256i const all = _mm256_or_si256(differ(0), differ(32));
        return _mm256_testz_si256(all, all) != 0;
#else
        std::uint64_t differ = 0;
#pragma GCC unroll 8
        for (std::size_t offset = 0; offset < 64; offset += 8) {
            differ |= load_word<kAlign>(a + offset) ^ load_word<kAlign>(b + offset);
        }
        return differ == 0;
#endif
    }
};

}  // namespace TH_STEP_NAMESPACE
}  // namespace tensorhash::step
