// Hashes a string with a table's secret, so that an attacker cannot choose strings that collide.
#ifndef TENSORHASH_TENSORFLOW_STRING_HASH_H_
#define TENSORHASH_TENSORFLOW_STRING_HASH_H_

#include <cstdint>
#include <string_view>

#include "tensorhash/step/hash.hpp"
#include "tensorhash/step/key.hpp"

namespace tensorhash_tf {

/// The length goes in first, so that strings that differ only in trailing zeros hash differently.
inline std::uint64_t string_hash(std::string_view string,
                                 tensorhash::step::HashSecret const& secret) {
    using namespace tensorhash::step;
    auto const* at = reinterpret_cast<unsigned char const*>(string.data());
    std::size_t left = string.size();
    std::uint64_t hash = fold_in(secret.start, left, secret);
    for (; left > 8; left -= 8, at += 8) {
        hash = fold_in(hash, load_word(at), secret);
    }
    return end_with(hash, load_bytes(at, static_cast<std::uint32_t>(left)), secret);
}

}  // namespace tensorhash_tf

#endif  // TENSORHASH_TENSORFLOW_STRING_HASH_H_
