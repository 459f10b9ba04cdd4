// A coordinate (b, x, y, z) packed into one 64-bit word, and the two hashes by which a flat table
// probes for it.
#pragma once

#include "tensorhash/step/hash.hpp"
#include "tensorhash/step/platform.hpp"

namespace tensorhash::step {
inline namespace TH_STEP_NAMESPACE {

// Bit 63 is always 1, so that 0 is not the key of any coordinate. Then come 9 bits for b and 18
// bits each for x, y and z.
inline constexpr std::int32_t kBatchMax = 511;
inline constexpr std::int32_t kCoordMin = -131072;
inline constexpr std::int32_t kCoordMax = 131071;
inline constexpr std::uint64_t kValidBit = 1ull << 63;
/// The key of an empty slot, and of a coordinate that has no key.
inline constexpr std::uint64_t kEmptyKey = 0;

inline constexpr std::uint64_t kCoordMask = (1ull << 18) - 1;

/// The key of a coordinate in range. Out of range it would be another coordinate's key: use
/// packed_or_empty.
TH_STEP constexpr std::uint64_t pack_key_4d(std::int32_t b, std::int32_t x, std::int32_t y,
                                            std::int32_t z) {
    return kValidBit | static_cast<std::uint64_t>(b & kBatchMax) << 54 |
           (static_cast<std::uint64_t>(x) & kCoordMask) << 36 |
           (static_cast<std::uint64_t>(y) & kCoordMask) << 18 |
           (static_cast<std::uint64_t>(z) & kCoordMask);
}

/// The 18 bits at `shift`, sign extended.
TH_STEP constexpr std::int32_t coord_at(std::uint64_t key, unsigned shift) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(key >> shift) << 14) >> 14;
}

TH_STEP constexpr void unpack_key_4d(std::uint64_t key, std::int32_t& b, std::int32_t& x,
                                     std::int32_t& y, std::int32_t& z) {
    b = static_cast<std::int32_t>(key >> 54) & kBatchMax;
    x = coord_at(key, 36);
    y = coord_at(key, 18);
    z = coord_at(key, 0);
}

/// The key, or kEmptyKey if a number is out of range. Branch-free. `Int` is int32 or int64.
template <class Int>
TH_STEP constexpr std::uint64_t packed_or_empty(Int b, Int x, Int y, Int z) {
    // Shifted to start at 0, a coordinate in range fits in 18 bits. A batch index fits in 9.
    auto const moved = [](Int c) {
        return static_cast<std::uint64_t>(static_cast<std::int64_t>(c)) + kCoordMask / 2 + 1;
    };
    std::uint64_t const over = (moved(x) | moved(y) | moved(z)) >> 18 |
                               static_cast<std::uint64_t>(static_cast<std::int64_t>(b)) >> 9;
    std::uint64_t const key =
        pack_key_4d(static_cast<std::int32_t>(b), static_cast<std::int32_t>(x),
                    static_cast<std::int32_t>(y), static_cast<std::int32_t>(z));
    return over == 0 ? key : kEmptyKey;
}

/// The key of the coordinate row * scale + offset, or kEmptyKey if that is out of range. Takes up
/// to four columns; missing ones are 0. The sums have 64 bits: in 32 they could wrap into range.
TH_STEP constexpr std::uint64_t shifted_or_empty(std::int32_t const* row, std::uint32_t columns,
                                                 std::int32_t const* scale,
                                                 std::int32_t const* offset) {
    std::int64_t moved[4] = {};
    for (std::uint32_t c = 0; c < columns; ++c) {
        moved[c] = static_cast<std::int64_t>(row[c]) * scale[c] + offset[c];
    }
    return packed_or_empty(moved[0], moved[1], moved[2], moved[3]);
}

struct Splitmix64Hash {
    /// The low 32 bits of splitmix64's finalizer, masked. The mask is a power of two minus one.
    static TH_STEP constexpr std::uint32_t hash(std::uint64_t key, std::uint32_t capacity_mask) {
        return static_cast<std::uint32_t>(avalanche(key)) & capacity_mask;
    }

    /// Odd, so that steps of this size visit every slot of a power-of-two table.
    static TH_STEP constexpr std::uint32_t double_hash_stride(std::uint64_t key,
                                                              std::uint32_t capacity_mask) {
        key ^= key >> 33;
        key *= 0xff51afd7ed558ccdull;
        key ^= key >> 33;
        return (static_cast<std::uint32_t>(key) & capacity_mask) | 1u;
    }
};

}  // namespace TH_STEP_NAMESPACE
}  // namespace tensorhash::step
