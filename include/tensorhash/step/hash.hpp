// Hashes with full avalanche: a bijection for keys that fit in one word, a chain of bijections for
// wider ones.
#pragma once

#include "tensorhash/step/platform.hpp"

namespace tensorhash::step {

// Outside the per-level namespace: host code passes it to every instruction-set level.

inline constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15ull;

/// What the hash of one index depends on besides the key. The multipliers are odd. The default is
/// splitmix64's published constants, for shards, files and tables with a documented hash. All other
/// indices draw their own (`secret_of`), so that an attacker cannot craft
/// colliding keys: docs/decisions/0017-seeds.md.
struct HashSecret {
    std::uint64_t start = kGolden;
    std::uint64_t first = 0xbf58476d1ce4e5b9ull;
    std::uint64_t second = 0x94d049bb133111ebull;
};

inline namespace TH_STEP_NAMESPACE {

// The templates take a word or a vector of words.

template <class Words>
TH_STEP constexpr Words avalanche_all(Words x, HashSecret const& secret) {
    x = (x ^ (x >> 30)) * secret.first;
    x = (x ^ (x >> 27)) * secret.second;
    return x ^ (x >> 31);
}

/// The mixing of splitmix64: every input bit flips every output bit with probability one half. A
/// bijection.
TH_STEP constexpr std::uint64_t avalanche(std::uint64_t x, HashSecret const& secret = {}) {
    return avalanche_all(x, secret);
}

template <class Words>
TH_STEP constexpr Words mix_all(Words x, HashSecret const& secret) {
    return avalanche_all(x + secret.start, secret);
}

/// splitmix64 of a key that fits in a word. Slots can hold the mixed word instead of the key:
/// equal words mean equal keys, and a rebuild needs no rehash. The keys that mix to the marks of
/// empty and erased slots are unlikely to occur by chance.
TH_STEP constexpr std::uint64_t mix(std::uint64_t x, HashSecret const& secret = {}) {
    return mix_all(x, secret);
}

/// Derives a secret from a seed. A multiplier with long runs of equal bits mixes badly, so it is
/// changed.
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

/// The inverse of an odd number modulo 2^64. For tests.
TH_STEP constexpr std::uint64_t inverse_of(std::uint64_t odd) {
    std::uint64_t x = odd;  // correct in the lowest three bits; each round doubles that
    for (int i = 0; i < 5; ++i) {
        x *= 2 - odd * x;
    }
    return x;
}

/// The inverse of `avalanche`. Tests make colliding keys with it.
TH_STEP constexpr std::uint64_t unavalanche(std::uint64_t x, HashSecret const& secret = {}) {
    x = (x ^ (x >> 31) ^ (x >> 62)) * inverse_of(secret.second);
    x = (x ^ (x >> 27) ^ (x >> 54)) * inverse_of(secret.first);
    return x ^ (x >> 30) ^ (x >> 60);
}

/// The inverse of `mix`. Tests make the keys that mix to the empty and erased marks with it.
TH_STEP constexpr std::uint64_t unmix(std::uint64_t x, HashSecret const& secret = {}) {
    return unavalanche(x, secret) - secret.start;
}

/// Adds one word to a running hash. For a given `hash` it is a bijection of `word`, so it loses
/// nothing. Files and shards depend on this function and on `mix`: neither may change.
TH_STEP constexpr std::uint64_t mix_in(std::uint64_t hash, std::uint64_t word) {
    return mix(hash ^ word);
}

// Tables hash keys of several words with cheaper steps: start with `secret.start`, `fold_in` all
// words but the last, then `end_with`.

template <class Words>
TH_STEP constexpr Words fold_in_all(Words hash, Words word, HashSecret const& secret) {
    Words const x = (hash ^ word) * secret.first;
    return (x << 32 | x >> 32) * secret.second;
}

/// Also a bijection of `word`, but without avalanche. A product with an odd number keeps a flip of
/// the top bit in place. The rotation moves that flip to the middle of the word, and the second
/// secret multiplier spreads it. So an attacker cannot know the difference that a word leaves, and
/// cannot choose the next word to cancel it.
TH_STEP constexpr std::uint64_t fold_in(std::uint64_t hash, std::uint64_t word,
                                        HashSecret const& secret) {
    return fold_in_all(hash, word, secret);
}

/// Adds the last word and applies the avalanche.
TH_STEP constexpr std::uint64_t end_with(std::uint64_t hash, std::uint64_t word,
                                         HashSecret const& secret) {
    return avalanche(hash ^ word, secret);
}

/// The inverse of `fold_in`: the hash before `word` was added. For tests.
TH_STEP constexpr std::uint64_t fold_out(std::uint64_t folded, std::uint64_t word,
                                         HashSecret const& secret) {
    std::uint64_t const x = folded * inverse_of(secret.second);
    return (x << 32 | x >> 32) * inverse_of(secret.first) ^ word;
}

}  // namespace TH_STEP_NAMESPACE
}  // namespace tensorhash::step
