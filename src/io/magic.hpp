// The first bytes of our files. Each kind of table recognises its own files and names the others.
#pragma once

#include <cstddef>
#include <cstring>

namespace tensorhash::io {

// As in PNG: a text-mode transfer changes the line ends, so the reader notices it at once.
inline constexpr char kTableMagic[8] = {'T', 'H', 'A', 'S', 'H', '\r', '\n', '\x1a'};
inline constexpr char kBoundedMagic[8] = {'T', 'H', 'B', 'N', 'D', '\r', '\n', '\x1a'};
inline constexpr char kShardedMagic[8] = {'T', 'H', 'S', 'H', 'R', 'D', '\n', '\x1a'};

inline bool begins_with(unsigned char const* bytes, std::size_t count, char const (&magic)[8]) {
    return count >= sizeof(magic) && std::memcmp(bytes, magic, sizeof(magic)) == 0;
}

}  // namespace tensorhash::io
