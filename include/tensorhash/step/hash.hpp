// Hashes with full avalanche: a bijection for keys that fit in one word, a chain of bijections for wider ones.
#pragma once

#include "tensorhash/step/platform.hpp"

namespace tensorhash::kernel {

// Not in the instruction set's namespace: host code hands it to every level of the back end.

inline constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15ull;

/// What the hash of one index depends on beside the key. The multipliers are odd. The default is
/// splitmix64's, which is published: for shards, files and tables with a documented hash. All other
/// indices draw their own (`secret_of`), so that keys cannot be chosen to collide:
/// docs/decisions/0017-seeds.md.
struct HashSecret {
    std::uint64_t start = kGolden;
    std::uint64_t first = 0xbf58476d1ce4e5b9ull;
    std::uint64_t second = 0x94d049bb133111ebull;
};

inline namespace TH_KERNEL_NAMESPACE {

/// The mixing of splitmix64: every input bit flips every output bit with probability one half. A bijection.
TH_STEP constexpr std::uint64_t avalanche(std::uint64_t x, HashSecret const& secret = {}) {
    x = (x ^ (x >> 30)) * secret.first;
    x = (x ^ (x >> 27)) * secret.second;
    return x ^ (x >> 31);
}

/// splitmix64 of a key that fits in a word. Slots can hold the mixed word in place of the key: equality is kept and
/// rebuilding needs no rehash; and the marks of empty and erased slots are keys that nobody meets by chance.
TH_STEP constexpr std::uint64_t mix(std::uint64_t x, HashSecret const& secret = {}) {
    return avalanche(x + secret.start, secret);
}

/// The secret that a seed stands for. A multiplier with long runs of equal bits mixes badly: such a
/// one is changed.
inline constexpr HashSecret secret_of(std::uint64_t seed) {
    auto const multiplier = [](std::uint64_t word) {
        std::uint64_t const odd = word | 1;
        int changes = 0;
        for (std::uint64_t bits = odd ^ (odd >> 1); bits != 0; bits &= bits - 1) {
            ++changes;
        }
        return changes < 24 ? odd ^ 0xaaaaaaaaaaaaaaaaull : odd;
    };
    return {mix(seed), multiplier(mix(seed + kGolden)), multiplier(mix(seed + 2 * kGolden))};
}

/// The inverse of an odd number, modulo 2^64. For tests.
TH_STEP constexpr std::uint64_t inverse_of(std::uint64_t odd) {
    std::uint64_t x = odd;  // right in the lowest three bits, twice as many each time
    for (int i = 0; i < 5; ++i) {
        x *= 2 - odd * x;
    }
    return x;
}

/// The inverse of `avalanche`. For tests: keys that collide.
TH_STEP constexpr std::uint64_t unavalanche(std::uint64_t x, HashSecret const& secret = {}) {
    x = (x ^ (x >> 31) ^ (x >> 62)) * inverse_of(secret.second);
    x = (x ^ (x >> 27) ^ (x >> 54)) * inverse_of(secret.first);
    return x ^ (x >> 30) ^ (x >> 60);
}

/// The inverse of `mix`. For tests: the keys that fall on the marks.
TH_STEP constexpr std::uint64_t unmix(std::uint64_t x, HashSecret const& secret = {}) {
    return unavalanche(x, secret) - secret.start;
}

/// One more word into a running hash. A bijection of `word` for a given `hash`: no word is ever lost on the way. Files
/// and shards are made with it and with `mix`: both stay as they are.
TH_STEP constexpr std::uint64_t mix_in(std::uint64_t hash, std::uint64_t word) {
    return mix(hash ^ word);
}

// Tables have cheaper steps for keys of several words: from `secret.start`, `fold_in` for all words
// but the last, then `end_with`.

/// A bijection as well, by itself without avalanche. A multiplication by any odd number keeps a
/// flip of the top bit as it is. Rotated to the middle of the word, it meets a second secret
/// multiplier. So the difference that a word leaves is never known, and no next word can cancel it.
TH_STEP constexpr std::uint64_t fold_in(std::uint64_t hash, std::uint64_t word,
                                        HashSecret const& secret) {
    std::uint64_t const x = (hash ^ word) * secret.first;
    return (x << 32 | x >> 32) * secret.second;
}

/// The last word, and the avalanche.
TH_STEP constexpr std::uint64_t end_with(std::uint64_t hash, std::uint64_t word,
                                         HashSecret const& secret) {
    return avalanche(hash ^ word, secret);
}

/// The hash before `fold_in` changed it to `folded`. For tests, as `unmix`.
TH_STEP constexpr std::uint64_t fold_out(std::uint64_t folded, std::uint64_t word,
                                         HashSecret const& secret) {
    std::uint64_t const x = folded * inverse_of(secret.second);
    return (x << 32 | x >> 32) * inverse_of(secret.first) ^ word;
}

}  // namespace TH_KERNEL_NAMESPACE
}  // namespace tensorhash::kernel
