// The words of a string and its hash, with a secret.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "tensorhash/step/hash.hpp"

namespace tensorhash::strings {

/// The first 16 bytes of a string, with zeros after its end. With the size they are the whole of a
/// short string.
struct Head {
    std::uint64_t low = 0;
    std::uint64_t high = 0;

    friend bool operator==(Head const&, Head const&) = default;
};

inline constexpr std::size_t kHeadBytes = 16;

template <class Word>
std::uint64_t load(char const* at) noexcept {
    Word word;
    std::memcpy(&word, at, sizeof(word));
    return word;
}

/// 1 to 8 bytes. Two loads overlap instead of a loop over bytes.
inline std::uint64_t load_up_to_8(char const* at, std::size_t size) noexcept {
    if (size == 8) return load<std::uint64_t>(at);
    if (size >= 4) {
        return load<std::uint32_t>(at) | load<std::uint32_t>(at + size - 4) << (8 * (size - 4));
    }
    std::uint64_t word = static_cast<unsigned char>(at[0]);
    if (size >= 2) {
        word |= load<std::uint16_t>(at + size - 2) << (8 * (size - 2));
    }
    return word;
}

inline Head head_of(std::string_view string) noexcept {
    std::size_t const size = string.size();
    char const* const at = string.data();
    if (size >= kHeadBytes) return {load<std::uint64_t>(at), load<std::uint64_t>(at + 8)};
    if (size > 8) return {load<std::uint64_t>(at), load_up_to_8(at + 8, size - 8)};
    return {size == 0 ? 0 : load_up_to_8(at, size), 0};
}

/// The size goes in first, so that strings that differ only in trailing zeros hash differently.
inline std::uint64_t hash_of(std::string_view string, Head head,
                             step::HashSecret const& secret) noexcept {
    using step::fold_in;
    std::uint64_t hash = fold_in(secret.start, string.size(), secret);
    hash = fold_in(hash, head.low, secret);
    std::size_t at = kHeadBytes;
    std::uint64_t last = head.high;
    for (; at < string.size(); at += 8) {
        hash = fold_in(hash, last, secret);
        std::size_t const left = string.size() - at;
        last = load_up_to_8(string.data() + at, left < 8 ? left : 8);
    }
    return step::end_with(hash, last, secret);
}

}  // namespace tensorhash::strings
