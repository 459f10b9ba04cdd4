// Bytes of bool arrays. An array may hold any byte, and every nonzero byte is true. Tables hold
// only 0 and 1, because equal keys must have equal bytes.
#pragma once

#include <algorithm>
#include <cstddef>

namespace tensorhash {

/// Are all bytes 0 or 1?
inline bool are_canonical_bools(unsigned char const* bytes, std::size_t count) noexcept {
    return std::all_of(bytes, bytes + count, [](unsigned char byte) { return byte <= 1; });
}

/// Sets every nonzero byte to 1.
inline void canonicalize_bools(unsigned char* bytes, std::size_t count) noexcept {
    std::transform(bytes, bytes + count, bytes,
                   [](unsigned char byte) { return static_cast<unsigned char>(byte != 0); });
}

}  // namespace tensorhash
