// The first bytes of our files, and their versions. Each kind of table recognises its own files and
// names the others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

namespace tensorhash::io {

// As in PNG: a text-mode transfer changes the line ends, so the reader notices it at once.
inline constexpr char kTableMagic[8] = {'T', 'H', 'A', 'S', 'H', '\r', '\n', '\x1a'};
inline constexpr char kBoundedMagic[8] = {'T', 'H', 'B', 'N', 'D', '\r', '\n', '\x1a'};
inline constexpr char kShardedMagic[8] = {'T', 'H', 'S', 'H', 'R', 'D', '\n', '\x1a'};

inline bool begins_with(unsigned char const* bytes, std::size_t count, char const (&magic)[8]) {
    return count >= sizeof(magic) && std::memcmp(bytes, magic, sizeof(magic)) == 0;
}

/// What is wrong with a file of another version, for a message.
inline std::string wrong_version(std::uint64_t got, std::uint64_t expected) {
    return "it has version " + std::to_string(got) + ", this library reads version " +
           std::to_string(expected);
}

}  // namespace tensorhash::io
