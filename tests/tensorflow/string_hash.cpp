// The hash of TensorFlow's string tables: strings crafted to collide under another hash or another
// secret do not collide here.
#include "../../integrations/tensorflow/string_hash.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <unordered_set>
#include <vector>

namespace th_test {
namespace {

namespace step = tensorhash::step;
using tensorhash_tf::string_hash;

std::size_t distinct_hashes(std::vector<std::string> const& strings, std::uint64_t seed) {
    std::unordered_set<std::uint64_t> hashes;
    for (std::string const& string : strings)
        hashes.insert(string_hash(string, step::secret_of(seed)));
    return hashes.size();
}

/// Strings made of the words `word(row, place)`.
template <class Word>
std::vector<std::string> strings_of(std::size_t rows, std::size_t places, Word const& word) {
    std::vector<std::string> strings;
    for (std::size_t row = 0; row < rows; ++row) {
        std::string string;
        for (std::size_t place = 0; place < places; ++place) {
            std::uint64_t const bits = word(row, place);
            string.append(reinterpret_cast<char const*>(&bits), sizeof(bits));
        }
        strings.push_back(string);
    }
    return strings;
}

/// Murmur's 64-bit hash, which TensorFlow uses for strings.
std::uint64_t murmur64(std::string const& string, std::uint64_t seed) {
    constexpr std::uint64_t m = 0xc6a4a7935bd1e995u;
    std::uint64_t h = seed ^ string.size() * m;
    for (std::size_t at = 0; at + 8 <= string.size(); at += 8) {
        std::uint64_t k;
        std::memcpy(&k, string.data() + at, 8);
        k *= m;
        k ^= k >> 47;
        h = (h ^ k * m) * m;
    }
    h = (h ^ h >> 47) * m;
    return h ^ h >> 47;
}

TEST(StringHash, strings_that_collide_under_every_seed_of_murmur_do_not_collide) {
    // In each pair, the first word flips the top bit and the second flips it back.
    auto const before = [](std::uint64_t left) {
        constexpr std::uint64_t inverse = step::inverse_of(0xc6a4a7935bd1e995u);
        left *= inverse;
        left ^= left >> 47;
        return left * inverse;
    };
    auto const strings = strings_of(1024, 20, [&](std::size_t row, std::size_t place) {
        bool const flipped = (row >> place / 2 & 1) != 0;
        return before(place * 77 ^ (flipped ? std::uint64_t{1} << 63 : 0));
    });
    for (std::uint64_t seed : {0ull, 0xdecafcaffeull}) {
        std::unordered_set<std::uint64_t> hashes;
        for (std::string const& string : strings) hashes.insert(murmur64(string, seed));
        EXPECT_EQ(hashes.size(), 1u) << "the strings of this test do collide";
        EXPECT_EQ(distinct_hashes(strings, seed), strings.size());
    }
}

TEST(StringHash, strings_crafted_for_one_secret_do_not_collide_under_another) {
    constexpr std::size_t rows = 4096;
    auto const secret = step::secret_of(42);
    auto const strings = strings_of(rows, 2, [&](std::size_t row, std::size_t place) {
        std::uint64_t const first = row * 1234567;
        std::uint64_t const folded =
            step::fold_in(step::fold_in(secret.start, 16, secret), first, secret);
        return place == 0 ? first : folded ^ step::unavalanche(99, secret);
    });
    EXPECT_EQ(distinct_hashes(strings, 42), 1u);
    EXPECT_EQ(distinct_hashes(strings, 43), rows);
}

TEST(StringHash, every_length_and_every_byte_changes_the_hash) {
    std::vector<std::string> strings;
    for (std::size_t length = 0; length <= 40; ++length) {
        std::string const zeros(length, '\0');
        strings.push_back(zeros);
        for (std::size_t at = 0; at < length; ++at) {
            strings.push_back(zeros);
            strings.back()[at] = 'x';
        }
    }
    EXPECT_EQ(distinct_hashes(strings, 1), strings.size());
}

}  // namespace
}  // namespace th_test
