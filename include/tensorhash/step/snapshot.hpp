// A bucket, read once. All questions about it are answered from the same words, so several threads
// can fill one bucket. A slot seen as free is either still free when it is claimed, or the claim
// fails and the bucket is read again.
#pragma once

#include "tensorhash/step/atomic.hpp"
#include "tensorhash/step/bucket.hpp"

namespace tensorhash::step {
inline namespace TH_STEP_NAMESPACE {

/// Four adjacent words, aligned to 32 bytes in memory.
class FourWords {
public:
#if defined(TH_SIMD_AVX2)
    template <class Access>
    static TH_STEP FourWords read(std::uint64_t const* p) {
        FourWords words;
        if constexpr (Access::kShared) {
            // The assembly keeps it one load. Two loads could see two states of the bucket. Aligned
            // vector loads are atomic for each eight-byte lane on x86-64.
            asm volatile("vmovdqa %1, %0"
                         : "=x"(words.v_)
                         : "m"(*reinterpret_cast<__m256i const*>(p)));
        } else {
            words.v_ = _mm256_load_si256(reinterpret_cast<__m256i const*>(p));
        }
        return words;
    }
    TH_STEP std::uint32_t equal(std::uint64_t word) const {
        return bits(_mm256_cmpeq_epi64(v_, _mm256_set1_epi64x(static_cast<long long>(word))));
    }
    TH_STEP std::uint32_t equal_high_half(std::uint64_t word) const {
        return bits(_mm256_cmpeq_epi32(v_, _mm256_set1_epi64x(static_cast<long long>(word))));
    }
    static TH_STEP bool any_high_half(FourWords a, FourWords b, std::uint64_t word) {
        __m256i const wanted = _mm256_set1_epi64x(static_cast<long long>(word));
        return bits(_mm256_or_si256(_mm256_cmpeq_epi32(a.v_, wanted),
                                    _mm256_cmpeq_epi32(b.v_, wanted))) != 0;
    }
    TH_STEP std::uint32_t top_bits() const { return bits(v_); }
    TH_STEP FourWords without_top_bits() const {
        FourWords words;
        words.v_ = _mm256_and_si256(v_, _mm256_set1_epi64x(0x7fffffffffffffff));
        return words;
    }

private:
    // Sign bits of the 64-bit lanes: for a 32-bit comparison, the high halves.
    static TH_STEP std::uint32_t bits(__m256i same) {
        return static_cast<std::uint32_t>(_mm256_movemask_pd(_mm256_castsi256_pd(same)));
    }
    __m256i v_;
#elif defined(TH_SIMD_SSE41)
    template <class Access>
    static TH_STEP FourWords read(std::uint64_t const* p) {
        FourWords words;
        auto const* pair = reinterpret_cast<__m128i const*>(p);
        if constexpr (Access::kShared) {
            // As above: one load each.
            asm volatile("movdqa %1, %0" : "=x"(words.low_) : "m"(pair[0]));
            asm volatile("movdqa %1, %0" : "=x"(words.high_) : "m"(pair[1]));
        } else {
            words.low_ = _mm_load_si128(pair);
            words.high_ = _mm_load_si128(pair + 1);
        }
        return words;
    }
    TH_STEP std::uint32_t equal(std::uint64_t word) const {
        __m128i const wanted = _mm_set1_epi64x(static_cast<long long>(word));
        return bits(_mm_cmpeq_epi64(low_, wanted), _mm_cmpeq_epi64(high_, wanted));
    }
    TH_STEP std::uint32_t equal_high_half(std::uint64_t word) const {
        __m128i const wanted = _mm_set1_epi64x(static_cast<long long>(word));
        return bits(_mm_cmpeq_epi32(low_, wanted), _mm_cmpeq_epi32(high_, wanted));
    }
    static TH_STEP bool any_high_half(FourWords a, FourWords b, std::uint64_t word) {
        __m128i const wanted = _mm_set1_epi64x(static_cast<long long>(word));
        __m128i const low =
            _mm_or_si128(_mm_cmpeq_epi32(a.low_, wanted), _mm_cmpeq_epi32(b.low_, wanted));
        __m128i const high =
            _mm_or_si128(_mm_cmpeq_epi32(a.high_, wanted), _mm_cmpeq_epi32(b.high_, wanted));
        return _mm_movemask_pd(_mm_castsi128_pd(_mm_or_si128(low, high))) != 0;
    }
    TH_STEP std::uint32_t top_bits() const { return bits(low_, high_); }
    TH_STEP FourWords without_top_bits() const {
        __m128i const others = _mm_set1_epi64x(0x7fffffffffffffff);
        FourWords words;
        words.low_ = _mm_and_si128(low_, others);
        words.high_ = _mm_and_si128(high_, others);
        return words;
    }

private:
    static TH_STEP std::uint32_t bits(__m128i low, __m128i high) {
        return static_cast<std::uint32_t>(_mm_movemask_pd(_mm_castsi128_pd(low)) |
                                          (_mm_movemask_pd(_mm_castsi128_pd(high)) << 2));
    }
    __m128i low_, high_;
#else
    template <class Access>
    static TH_STEP FourWords read(std::uint64_t const* p) {
        WordPair const low = Access::load_pair(p);
        WordPair const high = Access::load_pair(p + 2);
        FourWords words;
        words.v_[0] = low.first;
        words.v_[1] = low.second;
        words.v_[2] = high.first;
        words.v_[3] = high.second;
        return words;
    }
    TH_STEP std::uint32_t equal(std::uint64_t word) const {
        std::uint32_t lanes = 0;
        for (int i = 0; i < 4; ++i) {
            lanes |= static_cast<std::uint32_t>(v_[i] == word) << i;
        }
        return lanes;
    }
    TH_STEP std::uint32_t equal_high_half(std::uint64_t word) const {
        std::uint32_t lanes = 0;
        for (int i = 0; i < 4; ++i) {
            lanes |= static_cast<std::uint32_t>((v_[i] ^ word) >> 32 == 0) << i;
        }
        return lanes;
    }
    static TH_STEP bool any_high_half(FourWords a, FourWords b, std::uint64_t word) {
        return (a.equal_high_half(word) | b.equal_high_half(word)) != 0;
    }
    TH_STEP std::uint32_t top_bits() const {
        std::uint32_t lanes = 0;
        for (int i = 0; i < 4; ++i) {
            lanes |= static_cast<std::uint32_t>(v_[i] >> 63) << i;
        }
        return lanes;
    }
    TH_STEP FourWords without_top_bits() const {
        FourWords words;
        for (int i = 0; i < 4; ++i) {
            words.v_[i] = v_[i] << 1 >> 1;
        }
        return words;
    }

private:
    std::uint64_t v_[4];
#endif
};

#if defined(TH_SIMD_AVX512)
/// A whole bucket.
class EightWords {
public:
    template <class Access>
    static TH_STEP EightWords read(void const* p) {
        EightWords words;
        if constexpr (Access::kShared) {
            // One copy answers all questions. Each eight-byte lane of it is atomic, as above.
            asm volatile("vmovdqa64 %1, %0"
                         : "=v"(words.v_)
                         : "m"(*static_cast<__m512i const*>(p)));
        } else {
            words.v_ = _mm512_load_si512(p);
        }
        return words;
    }
    /// Only in these lanes.
    TH_STEP std::uint32_t equal(std::uint64_t word, std::uint32_t lanes = 0xff) const {
        return _mm512_mask_cmpeq_epi64_mask(static_cast<__mmask8>(lanes), v_, all(word));
    }
    TH_STEP std::uint32_t equal_high_half(std::uint64_t word) const {
        return _mm512_cmplt_epu64_mask(_mm512_xor_si512(v_, all(word)), all(1ull << 32));
    }
    TH_STEP std::uint32_t top_bits() const { return _mm512_movepi64_mask(v_); }
    TH_STEP EightWords without_top_bits() const {
        EightWords words;
        words.v_ = _mm512_and_si512(v_, all(0x7fffffffffffffffull));
        return words;
    }

private:
    static TH_STEP __m512i all(std::uint64_t word) {
        return _mm512_set1_epi64(static_cast<long long>(word));
    }
    __m512i v_;
};

/// Lanes are returned as bits, lane 0 lowest.
template <class Access>
class NarrowSnapshot {
public:
    TH_STEP explicit NarrowSnapshot(NarrowBucket const& bucket)
        : all_(EightWords::read<Access>(&bucket)) {}
    TH_STEP std::uint32_t with_word(std::uint64_t word) const {
        // The other words are tickets.
        return all_.equal(word, (1u << NarrowBucket::kLanes) - 1);
    }
    TH_STEP std::uint32_t empty() const { return with_word(NarrowBucket::kEmpty); }
    TH_STEP std::uint32_t erased() const { return with_word(NarrowBucket::kErased); }

private:
    EightWords all_;
};

template <class Access>
class WideSnapshot {
public:
    TH_STEP explicit WideSnapshot(WideBucket const& bucket)
        : all_(EightWords::read<Access>(&bucket)) {}
    TH_STEP bool has_fingerprint(std::uint64_t hash) const { return with_fingerprint(hash) != 0; }
    /// Lanes with this fingerprint. A set overflow bit hides its lane. Empty and erased slots may
    /// be among them: check the ticket.
    TH_STEP std::uint32_t with_fingerprint(std::uint64_t hash) const {
        return all_.equal_high_half(hash);
    }
    /// One bit per class.
    TH_STEP std::uint32_t overflow_bits() const { return all_.top_bits(); }
    /// The slots without their overflow bits.
    TH_STEP WideSnapshot without_overflow() const { return WideSnapshot(all_.without_top_bits()); }
    TH_STEP std::uint32_t empty() const { return all_.equal(WideBucket::kEmpty); }
    TH_STEP std::uint32_t erased() const { return all_.equal(WideBucket::kErased); }

private:
    TH_STEP explicit WideSnapshot(EightWords all) : all_(all) {}
    EightWords all_;
};
#else
/// Lanes are returned as bits, lane 0 lowest.
template <class Access>
class NarrowSnapshot {
public:
    TH_STEP explicit NarrowSnapshot(NarrowBucket const& bucket)
        : four_(FourWords::read<Access>(bucket.words)), fifth_(Access::load(&bucket.words[4])) {}
    TH_STEP std::uint32_t with_word(std::uint64_t word) const {
        return four_.equal(word) | (static_cast<std::uint32_t>(fifth_ == word) << 4);
    }
    TH_STEP std::uint32_t empty() const { return with_word(NarrowBucket::kEmpty); }
    TH_STEP std::uint32_t erased() const { return with_word(NarrowBucket::kErased); }

private:
    FourWords four_;
    std::uint64_t fifth_;
};

template <class Access>
class WideSnapshot {
public:
    TH_STEP explicit WideSnapshot(WideBucket const& bucket)
        : low_(FourWords::read<Access>(bucket.slots)),
          high_(FourWords::read<Access>(bucket.slots + 4)) {}
    /// Does `with_fingerprint` return any lane? This is cheaper, and in a batch of new keys the
    /// answer is almost always no.
    TH_STEP bool has_fingerprint(std::uint64_t hash) const {
        return FourWords::any_high_half(low_, high_, hash);
    }
    /// Lanes with this fingerprint. A set overflow bit hides its lane. Empty and erased slots may
    /// be among them: check the ticket.
    TH_STEP std::uint32_t with_fingerprint(std::uint64_t hash) const {
        return low_.equal_high_half(hash) | (high_.equal_high_half(hash) << 4);
    }
    /// One bit per class.
    TH_STEP std::uint32_t overflow_bits() const {
        return low_.top_bits() | (high_.top_bits() << 4);
    }
    /// The slots without their overflow bits.
    TH_STEP WideSnapshot without_overflow() const {
        return {low_.without_top_bits(), high_.without_top_bits()};
    }
    TH_STEP std::uint32_t empty() const { return with_slot(WideBucket::kEmpty); }
    TH_STEP std::uint32_t erased() const { return with_slot(WideBucket::kErased); }

private:
    TH_STEP WideSnapshot(FourWords low, FourWords high) : low_(low), high_(high) {}
    TH_STEP std::uint32_t with_slot(std::uint64_t slot) const {
        return low_.equal(slot) | (high_.equal(slot) << 4);
    }
    FourWords low_, high_;
};
#endif

}  // namespace TH_STEP_NAMESPACE
}  // namespace tensorhash::step
