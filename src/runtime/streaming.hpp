// Stores past the cache: memory that will have left it before anybody looks is written without being read first, and
// what is in the cache stays there. Where there is no such store, plain ones do the same.
#pragma once

#include <cstddef>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace tensorhash::runtime {

/// Addresses and sizes of streamed memory are multiples of this.
inline constexpr std::size_t kStreamStep = 16;

inline void stream_bytes(unsigned char* to, unsigned char const* from, std::size_t bytes) noexcept {
#if defined(__SSE2__)
    for (std::size_t at = 0; at < bytes; at += kStreamStep) {
        _mm_stream_si128(reinterpret_cast<__m128i*>(to + at),
                         _mm_loadu_si128(reinterpret_cast<__m128i const*>(from + at)));
    }
#else
    std::memcpy(to, from, bytes);
#endif
}

inline void stream_zeros(unsigned char* to, std::size_t bytes) noexcept {
#if defined(__SSE2__)
    for (std::size_t at = 0; at < bytes; at += kStreamStep) {
        _mm_stream_si128(reinterpret_cast<__m128i*>(to + at), _mm_setzero_si128());
    }
#else
    std::memset(to, 0, bytes);
#endif
}

/// After the last of a task's stores: they are not ordered by themselves.
inline void end_stream() noexcept {
#if defined(__SSE2__)
    _mm_sfence();
#endif
}

}  // namespace tensorhash::runtime
