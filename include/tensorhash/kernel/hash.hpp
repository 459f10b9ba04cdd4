// Hashes with full avalanche: a bijection for keys that fit in one word, a chain of bijections for wider ones.
#pragma once

#include "tensorhash/kernel/platform.hpp"

namespace tensorhash::kernel {
inline namespace TH_KERNEL_NAMESPACE {

inline constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15ull;
inline constexpr std::uint64_t kFolding = 0xd1342543de82ef95ull;
inline constexpr std::uint64_t kUnfolding = 0x572b5ee77a54e3bdull;  // its inverse

/// splitmix64: every input bit flips every output bit with probability one half. A bijection, so that slots can
/// hold the mixed word in place of the key: equality is kept and rebuilding needs no rehash.
TH_STEP constexpr std::uint64_t mix(std::uint64_t x) {
    x += kGolden;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

/// The inverse of `mix`. Tests use it to make the keys that fall on the marks of empty and erased slots.
TH_STEP constexpr std::uint64_t unmix(std::uint64_t x) {
    x = (x ^ (x >> 31) ^ (x >> 62)) * 0x319642b2d24d8ec3ull;
    x = (x ^ (x >> 27) ^ (x >> 54)) * 0x96de1b173f119089ull;
    x = x ^ (x >> 30) ^ (x >> 60);
    return x - kGolden;
}

/// One more word into a running hash. A bijection of `word` for a given `hash`: no word is ever lost on the way.
TH_STEP constexpr std::uint64_t mix_in(std::uint64_t hash, std::uint64_t word) {
    return mix(hash ^ word);
}

/// The same at half the price, for a hash that `mix_in` ends. A bijection too; by itself no avalanche. The first shift
/// lets high bits of the word reach low ones: keys that differ only there (every 2^24th voxel) would meet in the next word.
TH_STEP constexpr std::uint64_t fold_in(std::uint64_t hash, std::uint64_t word) {
    std::uint64_t x = hash ^ word;
    x = (x ^ (x >> 32)) * kFolding;
    return x ^ (x >> 29);
}

/// The hash before `fold_in` changed it to `folded`. For tests, as `unmix`.
TH_STEP constexpr std::uint64_t fold_out(std::uint64_t folded, std::uint64_t word) {
    std::uint64_t const x = (folded ^ (folded >> 29) ^ (folded >> 58)) * kUnfolding;
    return x ^ (x >> 32) ^ word;
}

}  // namespace TH_KERNEL_NAMESPACE
}  // namespace tensorhash::kernel
