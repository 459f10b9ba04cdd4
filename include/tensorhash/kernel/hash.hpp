// Hashes with full avalanche: a bijection for keys that fit in one word, a chain of bijections for wider ones.
#pragma once

#include "tensorhash/kernel/platform.hpp"

namespace tensorhash::kernel {
inline namespace TH_KERNEL_NAMESPACE {

inline constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15ull;
inline constexpr std::uint64_t kFolding = 0xd1342543de82ef95ull;
inline constexpr std::uint64_t kUnfolding = 0x572b5ee77a54e3bdull;  // its inverse

/// The mixing of splitmix64: every input bit flips every output bit with probability one half. A bijection.
TH_STEP constexpr std::uint64_t avalanche(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

/// splitmix64 of a key that fits in a word. Slots can hold the mixed word in place of the key: equality is kept and
/// rebuilding needs no rehash; and the marks of empty and erased slots are keys that nobody meets by chance.
TH_STEP constexpr std::uint64_t mix(std::uint64_t x) { return avalanche(x + kGolden); }

/// The inverse of `avalanche`. For tests: keys that collide.
TH_STEP constexpr std::uint64_t unavalanche(std::uint64_t x) {
    x = (x ^ (x >> 31) ^ (x >> 62)) * 0x319642b2d24d8ec3ull;
    x = (x ^ (x >> 27) ^ (x >> 54)) * 0x96de1b173f119089ull;
    return x ^ (x >> 30) ^ (x >> 60);
}

/// The inverse of `mix`. For tests: the keys that fall on the marks.
TH_STEP constexpr std::uint64_t unmix(std::uint64_t x) { return unavalanche(x) - kGolden; }

/// One more word into a running hash. A bijection of `word` for a given `hash`: no word is ever lost on the way. Files
/// and shards are made with it and with `mix`: both stay as they are.
TH_STEP constexpr std::uint64_t mix_in(std::uint64_t hash, std::uint64_t word) {
    return mix(hash ^ word);
}

// Tables, whose hashes nobody keeps, have cheaper steps for keys of several words.

/// Where a hash begins. Some key's hash is 0, whatever this is; it shall not be one that people have, as (12, 0, 0).
TH_STEP constexpr std::uint64_t first_hash(std::uint64_t key_bytes) {
    return 0x243f6a88u ^ key_bytes;
}

/// All words but the last: a bijection as well, by itself without avalanche. The first shift lets high bits of the word
/// reach low ones: keys that differ only there (every 2^24th voxel) would meet in the next word.
TH_STEP constexpr std::uint64_t fold_in(std::uint64_t hash, std::uint64_t word) {
    std::uint64_t x = hash ^ word;
    x = (x ^ (x >> 32)) * kFolding;
    return x ^ (x >> 29);
}

/// The last word, and the avalanche.
TH_STEP constexpr std::uint64_t end_with(std::uint64_t hash, std::uint64_t word) {
    return avalanche(hash ^ word);
}

/// The hash before `fold_in` changed it to `folded`. For tests, as `unmix`.
TH_STEP constexpr std::uint64_t fold_out(std::uint64_t folded, std::uint64_t word) {
    std::uint64_t const x = (folded ^ (folded >> 29) ^ (folded >> 58)) * kUnfolding;
    return x ^ (x >> 32) ^ word;
}

}  // namespace TH_KERNEL_NAMESPACE
}  // namespace tensorhash::kernel
