// Streaming stores, for memory that would leave the cache before it is read again. They write
// without reading the memory first and leave the cache alone. Without SSE2 they are plain stores.
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

/// Call after the last store of a task: streaming stores are not ordered otherwise.
inline void end_stream() noexcept {
#if defined(__SSE2__)
    _mm_sfence();
#endif
}

}  // namespace tensorhash::runtime
