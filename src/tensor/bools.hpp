// Bytes of bool arrays. An array may hold any byte, and every byte but 0 is true. Tables hold 0 and
// 1 only, or equal keys would differ.
#pragma once

#include <algorithm>
#include <cstddef>

namespace tensorhash {

/// Whether all bytes are 0 or 1.
inline bool has_true_bools(unsigned char const* bytes, std::size_t count) noexcept {
    return std::all_of(bytes, bytes + count, [](unsigned char byte) { return byte <= 1; });
}

/// Makes every byte 0 or 1.
inline void make_true_bools(unsigned char* bytes, std::size_t count) noexcept {
    std::transform(bytes, bytes + count, bytes,
                   [](unsigned char byte) { return static_cast<unsigned char>(byte != 0); });
}

}  // namespace tensorhash
