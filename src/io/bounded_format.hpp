// The file of a bounded table: a short head before the .thash image of the table. docs/file-format.md describes it.
#pragma once

#include "io/file.hpp"
#include "io/format.hpp"
#include "tensorhash/bounded_map.hpp"

namespace tensorhash::io {

struct BoundedHead {
    Eviction eviction;
    std::uint64_t clock;
    std::uint64_t uses;
};

/// Bytes of the head.
inline constexpr std::size_t kHeadBytes = 40;

void write_head(Sink& sink, BoundedHead const& head);

/// Reads the head and moves `bytes` and `count` behind it. Throws FormatError.
BoundedHead read_head(unsigned char const*& bytes, std::size_t& count);

}  // namespace tensorhash::io
