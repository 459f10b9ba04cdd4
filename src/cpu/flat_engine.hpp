// The CPU back end's loops over the rows of a flat table: one table of functions per
// instruction-set level.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensorhash/step/flat.hpp"

namespace tensorhash::cpu {

/// What a range of claims did.
struct FlatCount {
    std::uint64_t claimed = 0;  // new keys
    std::uint32_t longest = 0;  // largest distance of a key from where its probe begins
    bool full = false;          // some row found no slot; earlier rows of its range have theirs
};

/// Rows of integers as the caller passes them: `columns` numbers each, int32 or int64, contiguous.
struct FlatRows {
    void const* data;
    std::uint32_t columns;  // 1 to 4; missing ones are 0
    bool wide;              // int64
};

/// How many buckets a lookup reads at a time. Tables with double hashing go slot by slot.
enum class FlatWindow : unsigned char { Bucket, FourBuckets };

struct FlatLoops {
    /// Packs rows [begin, end) into keys[i - begin]; kEmptyKey if a number is out of range. Returns
    /// how many are.
    std::size_t (*pack)(FlatRows const&, std::size_t begin, std::size_t end, std::uint64_t* keys);
    /// out[i] = row of keys[i], or -1. All on the caller's thread.
    void (*find_keys)(step::FlatView const&, FlatWindow, std::uint64_t const* keys,
                      std::size_t count, std::int32_t* out);
    /// The same for rows [begin, end), into out[i - begin].
    void (*find_rows)(step::FlatView const&, FlatWindow, FlatRows const&, std::size_t begin,
                      std::size_t end, std::int32_t* out);

    /// Claims a slot for each keys[i], with row first_row + i. No key may be kEmptyKey.
    /// `positions`, if given, receives the slots.
    using Claim = FlatCount (*)(step::FlatView const&, std::uint64_t const* keys, std::size_t count,
                                std::uint32_t first_row, std::uint32_t* positions);
    Claim claim_exclusive;  // for one thread
    Claim claim_shared;     // several ranges at once
};

/// The loops at the best level that the machine and TENSORHASH_ISA allow.
FlatLoops const& flat_loops();

}  // namespace tensorhash::cpu
