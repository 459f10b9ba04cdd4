// The CPU back end's loops over the rows of a flat table: one table of functions per instruction-set level.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensorhash/step/flat.hpp"

namespace tensorhash::cpu {

/// What a range of claims did.
struct FlatCount {
    std::uint64_t claimed = 0;  // new keys
    std::uint32_t longest = 0;  // the farthest that a row's key lies from where its probe begins
    bool full = false;  // some row found no slot; the rows before it in its range have theirs
};

/// Rows of integers as they come: `columns` numbers each, int32 or int64, contiguous.
struct FlatRows {
    void const* data;
    std::uint32_t columns;  // 1 to 4; missing ones are zeros
    bool wide;              // int64
};

/// How a lookup of a table that steps by 1 reads slots; tables with double hashing go slot by slot.
enum class FlatWindow : unsigned char { Line, FourLines };

struct FlatKernels {
    /// keys[i - begin] of the rows [begin, end), kEmptyKey where a number is out of range. Returns how many those are.
    std::size_t (*pack)(FlatRows const&, std::size_t begin, std::size_t end, std::uint64_t* keys);
    /// out[i] = row of keys[i], or -1. All on the caller's thread.
    void (*find_keys)(kernel::FlatView const&, FlatWindow, std::uint64_t const* keys,
                      std::size_t count, std::int32_t* out);
    /// out[i - begin] of the rows [begin, end).
    void (*find_rows)(kernel::FlatView const&, FlatWindow, FlatRows const&, std::size_t begin,
                      std::size_t end, std::int32_t* out);

    /// Claims for keys[i], none of them kEmptyKey, with row first_row + i; positions, if given, learn the slots.
    using Claim = FlatCount (*)(kernel::FlatView const&, std::uint64_t const* keys,
                                std::size_t count, std::uint32_t first_row,
                                std::uint32_t* positions);
    Claim claim_sole;    // for one thread alone
    Claim claim_shared;  // several ranges at once
};

/// The loops at the best level that this machine (and TENSORHASH_ISA) has.
FlatKernels const& flat_kernels();

}  // namespace tensorhash::cpu
