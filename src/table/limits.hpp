// The size limit of a table.
#pragma once

#include <cstdint>

namespace tensorhash::table {

/// One table holds at most this many entries: buffer indices are int32.
inline constexpr std::uint64_t kMaxEntries = (std::uint64_t{1} << 31) - 1;

/// Throws ValueError: a batch needs this many entries.
[[noreturn]] void fail_too_many(std::uint64_t entries);

}  // namespace tensorhash::table
