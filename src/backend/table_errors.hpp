// The size limit of a table and the messages about it and about damaged tables, the same on every
// device. The functions are only called after a check has failed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensorhash/export.hpp"

namespace tensorhash::backend {

/// One table holds at most this many entries: buffer indices are int32.
inline constexpr std::uint64_t kMaxEntries = (std::uint64_t{1} << 31) - 1;

/// A batch needs this many entries.
[[noreturn]] TH_API void fail_too_many(std::uint64_t entries);
[[noreturn]] TH_API void fail_capacity(std::uint64_t capacity);

// Throw CorruptTable.

/// `top` indices, `free` of them free, do not fit the capacity.
[[noreturn]] TH_API void fail_sizes(std::uint32_t top, std::size_t free, std::uint64_t capacity);
[[noreturn]] TH_API void fail_free_index(std::uint32_t buf_index);
[[noreturn]] TH_API void fail_bool_key(std::uint32_t buf_index);
/// A lookup of the key at `buf_index` found another one, or none.
[[noreturn]] TH_API void fail_lookup(std::uint32_t buf_index, std::uint32_t found);

}  // namespace tensorhash::backend
