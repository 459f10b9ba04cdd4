#include "support/collisions.hpp"

#include <cstring>

namespace th_test {

void write_same_home_key(void* out, std::uint32_t home, std::uint64_t number,
                         step::HashSecret const& secret) {
    std::uint64_t const low = number << 5 | (number * 11 & 31);
    std::uint64_t word = step::unmix(std::uint64_t{home} << 32 | low, secret);
    std::memcpy(out, &word, 8);
}

void write_key_of_hash(void* out, std::size_t width, std::uint64_t wanted, std::uint64_t number,
                       step::HashSecret const& secret) {
    auto* bytes = static_cast<unsigned char*>(out);
    std::size_t whole = width / 8 * 8;
    // The tail is the number, the words after the first are arbitrary, and the first word is chosen
    // to give the wanted hash.
    std::memcpy(bytes + whole, &number, width - whole);
    for (std::size_t at = 8; at < whole; at += 8) {
        std::uint64_t word = step::mix(number * 7 + at);
        std::memcpy(bytes + at, &word, 8);
    }
    std::size_t const last = (width - 1) / 8 * 8;
    std::uint64_t hash = step::unavalanche(wanted, secret) ^
                         step::load_bytes(bytes + last, static_cast<std::uint32_t>(width - last));
    for (std::size_t at = last - 8; at >= 8; at -= 8) {
        hash = step::fold_out(hash, step::load_word(bytes + at), secret);
    }
    std::uint64_t const first = step::fold_out(hash, secret.start, secret);
    std::memcpy(bytes, &first, 8);
}

void write_same_hash_key(void* out, std::size_t width, std::uint64_t number,
                         step::HashSecret const& secret) {
    write_key_of_hash(out, width, 0x123456789abcdef0u ^ number << 61, number, secret);
}

Tensor same_home_keys(std::size_t rows, std::uint32_t home, std::uint64_t first,
                      step::HashSecret const& secret) {
    Tensor out = Tensor::empty({static_cast<std::int64_t>(rows), 1}, Dtype::Int64);
    auto* bytes = static_cast<char*>(out.data());
    for (std::size_t i = 0; i < rows; ++i)
        write_same_home_key(bytes + 8 * i, home, first + i, secret);
    return out;
}

Tensor same_hash_keys(std::size_t width, std::size_t rows, std::uint64_t first,
                      step::HashSecret const& secret) {
    return wide_keys(width, rows, [=](void* out, std::size_t i) {
        write_same_hash_key(out, width, first + i, secret);
    });
}

}  // namespace th_test
