// The loop that looks up a batch of strings, once per instruction-set level.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "strings/string_probe.hpp"

namespace tensorhash::strings {

/// Strings, and room for what the loop learns of them.
struct StringBatch {
    std::string_view const* strings;
    std::size_t count;
    bool is_preceded;  ///< as the source says
    Head* heads;
    std::uint64_t* hashes;
    std::uint32_t* numbers;  ///< in the table, or kNoString

    Query query(std::size_t i) const noexcept { return {strings[i], heads[i], hashes[i]}; }
};

struct StringLoops {
    /// Writes the head, the hash and the number of each string.
    void (*find)(StringTableView const&, StringSecret const&, StringBatch const&);
};

/// The loops at the best level that the machine and TENSORHASH_ISA allow.
StringLoops const& string_loops();

}  // namespace tensorhash::strings
