// The first bytes of our files, by which each kind of table knows its own and names the others.
#pragma once

#include <cstddef>
#include <cstring>

namespace tensorhash::io {

// As in PNG: a control character and line ends show at once what a text-mode transfer did to a file.
inline constexpr char kTableMagic[8] = {'T', 'H', 'A', 'S', 'H', '\r', '\n', '\x1a'};
inline constexpr char kBoundedMagic[8] = {'T', 'H', 'B', 'N', 'D', '\r', '\n', '\x1a'};
inline constexpr char kShardedMagic[8] = {'T', 'H', 'S', 'H', 'R', 'D', '\n', '\x1a'};

inline bool begins_with(unsigned char const* bytes, std::size_t count, char const (&magic)[8]) {
    return count >= sizeof(magic) && std::memcmp(bytes, magic, sizeof(magic)) == 0;
}

}  // namespace tensorhash::io
