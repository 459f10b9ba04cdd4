// The loop that looks up a batch of strings, once per instruction-set level.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "strings/string_probe.hpp"

namespace tensorhash::strings {

/// Strings of a batch. At least kHeadBytes of memory can be read behind those that begin in
/// [block, block + readable).
struct BatchStrings {
    std::string_view const* strings;
    std::size_t count;
    std::uintptr_t block;
    std::size_t readable;
};

struct StringLoops {
    /// Writes the query of each string and its number in the table, or kNoString.
    void (*find)(StringTableView const&, step::HashSecret const&, BatchStrings const&,
                 Query* queries, std::uint32_t* numbers);
};

/// The loops at the best level that the machine and TENSORHASH_ISA allow.
StringLoops const& string_loops();

}  // namespace tensorhash::strings
