// Quality of the hashes: every input bit flips every output bit half of the time. The low bits
// (bucket) and high bits (fingerprint) of structured keys spread like those of random keys.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <unordered_set>
#include <vector>

#include "cpu/wide_words.hpp"
#include "support/batches.hpp"
#include "tensorhash/step/hash.hpp"
#include "tensorhash/step/key.hpp"

namespace th_test {
namespace {

namespace step = tensorhash::step;

/// Counts how often each of 64 bits is set, eight bits at a time.
class BitCounts {
public:
    void add(std::uint64_t word) {
        for (int byte = 0; byte < 8; ++byte) {
            // Spread the bits of one byte over the bytes of a word: one addition counts eight bits.
            std::uint64_t bits = (word >> (8 * byte)) & 0xff;
            bits = (bits * 0x8040201008040201u >> 7) & 0x0101010101010101u;
            packed_[byte] += __builtin_bswap64(bits) & 0x0101010101010101u;
        }
        if (++pending_ == 255) flush();
    }
    /// The largest distance of any bit's frequency from one half.
    double worst_bias() {
        flush();
        double worst = 0;
        for (int bit = 0; bit < 64; ++bit)
            worst = std::max(
                worst,
                std::abs(static_cast<double>(counts_[bit]) / static_cast<double>(total_) - 0.5));
        return worst;
    }
    std::uint64_t count(int bit) {
        flush();
        return counts_[bit];
    }

private:
    void flush() {
        for (int byte = 0; byte < 8; ++byte)
            for (int bit = 0; bit < 8; ++bit)
                counts_[8 * byte + bit] += (packed_[byte] >> (8 * bit)) & 0xff;
        std::memset(packed_, 0, sizeof(packed_));
        total_ += pending_;
        pending_ = 0;
    }
    std::uint64_t packed_[8] = {};
    std::uint64_t counts_[64] = {};
    std::uint64_t total_ = 0;
    std::uint64_t pending_ = 0;
};

TEST(HashQuality, the_bit_counter_of_this_test_is_right) {
    Random random(1);
    BitCounts counts;
    std::uint64_t plain[64] = {};
    for (int i = 0; i < 1000; ++i) {
        std::uint64_t word = random.next() & random.next();
        counts.add(word);
        for (int bit = 0; bit < 64; ++bit) plain[bit] += word >> bit & 1;
    }
    std::uint64_t sum = 0, plain_sum = 0;
    for (int bit = 0; bit < 64; ++bit) {
        sum += counts.count(bit);
        plain_sum += plain[bit];
        EXPECT_EQ(counts.count(bit), plain[bit]) << bit;
    }
    EXPECT_EQ(sum, plain_sum);
}

/// Six standard deviations of a fair coin thrown `samples` times.
double tolerance(double samples) { return 6 * 0.5 / std::sqrt(samples); }

/// Secrets of some seeds, and the published constants. Slow tests use the first few.
std::vector<step::HashSecret> secrets(std::size_t count = 6) {
    std::vector<step::HashSecret> all;
    for (std::uint64_t seed : {1ull, ~0ull, 0ull, 2ull, 0xfedcba9876543210ull})
        all.push_back(step::secret_of(seed));
    all.push_back({});
    all.resize(count);
    return all;
}

TEST(HashQuality, without_a_secret_mix_is_splitmix64) {
    // The first two outputs of the generator from state 0.
    EXPECT_EQ(step::mix(0), 0xe220a8397b1dcdafu);
    EXPECT_EQ(step::mix(step::kGolden), 0x6e789e6aa1b965f4u);
}

TEST(HashQuality, every_seed_has_odd_multipliers_without_long_runs) {
    Random random(6);
    std::unordered_set<std::uint64_t> starts;
    for (int i = 0; i < 100000; ++i) {
        auto const secret =
            step::secret_of(i < 1000 ? static_cast<std::uint64_t>(i) : random.next());
        for (std::uint64_t multiplier : {secret.first, secret.second}) {
            ASSERT_EQ(multiplier % 2, 1u);
            ASSERT_GE(std::popcount(multiplier ^ multiplier >> 1), 24);
        }
        starts.insert(secret.start);
    }
    EXPECT_EQ(starts.size(), 100000u);
}

TEST(HashQuality, mix_is_a_bijection_and_unmix_its_inverse) {
    for (step::HashSecret const& secret : secrets()) {
        Random random(2);
        for (int i = 0; i < 100000; ++i) {
            std::uint64_t word = i < 1000 ? static_cast<std::uint64_t>(i) : random.next();
            ASSERT_EQ(step::unmix(step::mix(word, secret), secret), word);
            ASSERT_EQ(step::mix(step::unmix(word, secret), secret), word);
            ASSERT_EQ(step::unmix(step::mix(~word, secret), secret), ~word);
        }
    }
}

TEST(HashQuality, fold_in_is_a_bijection_of_the_word_and_of_the_hash) {
    for (step::HashSecret const& secret : secrets()) {
        Random random(5);
        for (int i = 0; i < 100000; ++i) {
            std::uint64_t const hash = random.next(), word = random.next();
            std::uint64_t const folded = step::fold_in(hash, word, secret);
            ASSERT_EQ(step::fold_out(folded, word, secret), hash);
            ASSERT_EQ(step::fold_out(folded, hash, secret), word);
        }
    }
}

TEST(HashQuality, mix_has_full_avalanche_on_random_words_and_on_counters) {
    constexpr int samples = 20000;
    for (step::HashSecret const& secret : secrets())
        for (bool counter : {false, true})
            for (int bit = 0; bit < 64; ++bit) {
                Random random(3);
                BitCounts flips;
                for (int i = 0; i < samples; ++i) {
                    std::uint64_t word = counter ? static_cast<std::uint64_t>(i) : random.next();
                    flips.add(step::mix(word, secret) ^
                              step::mix(word ^ (std::uint64_t{1} << bit), secret));
                }
                // Counters are not a random sample: allow for a published weakness of a bit or two.
                EXPECT_LT(flips.worst_bias(), counter ? 0.05 : tolerance(samples))
                    << "input bit " << bit << ", multiplier " << secret.first;
            }
}

TEST(HashQuality, the_wide_hash_has_full_avalanche_at_every_width) {
    constexpr int samples = 1024;
    step::HashSecret const secret = step::secret_of(7);
    for (std::uint32_t width = 9; width <= 64; ++width) {
        step::WideAny reader(step::KeyFormat{width, 0});
        Random random(width);
        std::vector<unsigned char> keys(samples * width);
        for (unsigned char& byte : keys) byte = static_cast<unsigned char>(random.next());
        std::vector<std::uint64_t> before(samples);
        for (std::size_t i = 0; i < samples; ++i) before[i] = reader.hash(&keys[i * width], secret);
        for (std::uint32_t bit = 0; bit < 8 * width; ++bit) {
            BitCounts flips;
            for (std::size_t i = 0; i < samples; ++i) {
                unsigned char* byte = &keys[i * width + bit / 8];
                *byte = static_cast<unsigned char>(*byte ^ (1u << bit % 8));
                flips.add(before[i] ^ reader.hash(&keys[i * width], secret));
                *byte = static_cast<unsigned char>(*byte ^ (1u << bit % 8));
            }
            ASSERT_LT(flips.worst_bias(), tolerance(samples))
                << "width " << width << ", input bit " << bit;
        }
    }
}

TEST(HashQuality, the_fast_paths_hash_like_the_general_one) {
    Random random(4);
    for (int i = 0; i < 1000; ++i) {
        unsigned char key[16], other[16];
        for (unsigned char& byte : key) byte = static_cast<unsigned char>(random.next());
        std::memcpy(other, key, 16);
        other[i % 16] = static_cast<unsigned char>(other[i % 16] ^ 1);
        step::KeyFormat twelve{12, 0}, sixteen{16, 0};
        auto const secret = step::secret_of(static_cast<std::uint64_t>(i));
        EXPECT_EQ(step::Wide12(twelve).hash(key, secret), step::WideAny(twelve).hash(key, secret));
        EXPECT_EQ(step::Wide16(sixteen).hash(key, secret),
                  step::WideAny(sixteen).hash(key, secret));
        EXPECT_EQ(step::Wide12(twelve).equal(key, other), step::WideAny(twelve).equal(key, other));
        EXPECT_EQ(step::Wide16(sixteen).equal(key, other), false);
        EXPECT_TRUE(step::Wide12(twelve).equal(key, key));
    }
}

/// Hashes like WideAny, and tells every flipped byte.
template <class Reader>
void expect_like_any(std::uint32_t width) {
    Random random(5);
    std::vector<unsigned char> key(width);
    for (unsigned char& byte : key) byte = static_cast<unsigned char>(random.next());
    step::KeyFormat const format{width, 0};
    Reader const words(format);
    auto const secret = step::secret_of(width);
    EXPECT_EQ(words.hash(key.data(), secret), step::WideAny(format).hash(key.data(), secret));
    std::vector<unsigned char> other = key;
    EXPECT_TRUE(words.equal(key.data(), other.data()));
    for (std::size_t at = 0; at < width; ++at) {
        other[at] ^= 1;
        EXPECT_FALSE(words.equal(key.data(), other.data())) << "width " << width;
        other[at] ^= 1;
    }
}

TEST(HashQuality, whole_words_hash_like_any_wide_key) {
    for (std::uint32_t width : {24u, 32u, 40u, 64u, 128u}) expect_like_any<step::WideWords>(width);
    expect_like_any<step::Wide64>(64);
}

/// Chi-square of the hashes over buckets, in standard deviations from random hashes.
double spread(std::vector<std::uint64_t> const& hashes, int shift, int bits) {
    std::vector<double> counts(std::size_t{1} << bits, 0);
    for (std::uint64_t hash : hashes) ++counts[(hash >> shift) & (counts.size() - 1)];
    double expected = static_cast<double>(hashes.size()) / static_cast<double>(counts.size());
    double chi_square = 0;
    for (double count : counts) chi_square += (count - expected) * (count - expected) / expected;
    double freedom = static_cast<double>(counts.size() - 1);
    return (chi_square - freedom) / std::sqrt(2 * freedom);
}

void expect_random_spread(std::vector<std::uint64_t> const& hashes, std::string const& what) {
    for (int bits : {4, 8, 12, 15})
        for (int shift : {0, 32, 64 - bits}) {
            // Too even is as wrong as too uneven.
            EXPECT_LT(std::abs(spread(hashes, shift, bits)), 6)
                << what << ": bits " << shift << " to " << shift + bits;
        }
    EXPECT_EQ(std::unordered_set<std::uint64_t>(hashes.begin(), hashes.end()).size(), hashes.size())
        << what;
}

/// Hashes of int32 voxels (x, y, z) or (7, x, y, z), from a cube with 64 voxels per side that
/// begins at `low` with spacing `step`.
template <class Reader>
std::vector<std::uint64_t> voxel_hashes(std::int32_t low, std::int32_t step,
                                        step::HashSecret const& secret) {
    constexpr std::size_t columns = Reader::kBytes / 4;
    std::vector<std::uint64_t> hashes;
    Reader reader(step::KeyFormat{Reader::kBytes, 0});
    auto const at = [&](std::uint32_t i) {
        return static_cast<std::int32_t>(static_cast<std::uint32_t>(low) +
                                         i * static_cast<std::uint32_t>(step));
    };
    for (std::uint32_t x = 0; x < 64; ++x)
        for (std::uint32_t y = 0; y < 64; ++y)
            for (std::uint32_t z = 0; z < 64; ++z) {
                std::int32_t key[4] = {7, at(x), at(y), at(z)};
                hashes.push_back(
                    reader.hash(reinterpret_cast<unsigned char const*>(key + 4 - columns), secret));
            }
    return hashes;
}

template <class Reader>
void expect_grids_spread() {
    for (step::HashSecret const& secret : secrets(2)) {
        expect_random_spread(voxel_hashes<Reader>(0, 1, secret), "one octant");
        expect_random_spread(voxel_hashes<Reader>(-32, 1, secret), "around the origin");
        expect_random_spread(voxel_hashes<Reader>(-100000, 1, secret), "negative octant");
        for (int bits : {8, 16, 20, 24, 26})
            expect_random_spread(voxel_hashes<Reader>(0, 1 << bits, secret),
                                 "every 2^" + std::to_string(bits) + "th voxel");
    }
}

TEST(HashQuality, voxel_grids_spread_like_random_keys) { expect_grids_spread<step::Wide12>(); }

TEST(HashQuality, voxel_grids_of_batches_spread_like_random_keys) {
    expect_grids_spread<step::Wide16>();
}

/// Hashes of box corners: every choice of signs of `columns` numbers, for 256 boxes.
template <class Number>
std::vector<std::uint64_t> corner_hashes(std::uint32_t columns, step::HashSecret const& secret) {
    std::uint32_t const bytes = columns * sizeof(Number);
    step::WideAny reader(step::KeyFormat{bytes, sizeof(Number)});
    std::vector<std::uint64_t> hashes;
    std::vector<Number> key(columns);
    for (int box = 1; box <= 256; ++box)
        for (std::uint32_t signs = 0; signs < 1u << columns; ++signs) {
            for (std::uint32_t i = 0; i < columns; ++i)
                key[i] = (signs >> i & 1 ? -1 : 1) * static_cast<Number>(box + static_cast<int>(i));
            hashes.push_back(
                reader.hash(reinterpret_cast<unsigned char const*>(key.data()), secret));
        }
    return hashes;
}

TEST(HashQuality, keys_that_differ_only_in_signs_spread_like_random_keys) {
    for (step::HashSecret const& secret : secrets(1))
        for (std::uint32_t columns : {8u, 10u, 12u}) {
            expect_random_spread(corner_hashes<float>(columns, secret), "signs of floats");
            expect_random_spread(corner_hashes<double>(columns, secret), "signs of doubles");
        }
}

TEST(HashQuality, structured_words_spread_like_random_keys) {
    for (step::HashSecret const& secret : secrets(3)) {
        auto hashes = [&](auto word) {
            std::vector<std::uint64_t> out;
            for (std::uint64_t i = 0; i < 1u << 18; ++i) out.push_back(step::mix(word(i), secret));
            return out;
        };
        expect_random_spread(hashes([](std::uint64_t i) { return i; }), "sequence");
        expect_random_spread(hashes([](std::uint64_t i) { return i << 32; }), "shifted by 32");
        expect_random_spread(hashes([](std::uint64_t i) { return i << 46; }), "shifted by 46");
        expect_random_spread(hashes([](std::uint64_t i) {
                                 return std::bit_cast<std::uint64_t>(static_cast<double>(i));
                             }),
                             "float64 bits of integers");
        expect_random_spread(hashes([](std::uint64_t i) {
                                 return (i >> 12) << 42 | (i >> 6 & 63) << 21 | (i & 63);
                             }),
                             "packed coordinates");
    }
}

TEST(HashQuality, equal_floats_hash_equal) {
    float zeros[] = {0.0f, -0.0f, std::nanf("1"), -std::nanf("2"), 1.0f, 2.0f};
    float other[] = {-0.0f, 0.0f, -std::nanf("7"), std::nanf(""), 1.0f, 2.0f};
    for (std::uint32_t bytes : {12u, 16u, 20u, 24u}) {
        step::WideAny reader(step::KeyFormat{bytes, 4});
        auto const* a = reinterpret_cast<unsigned char const*>(zeros);
        auto const* b = reinterpret_cast<unsigned char const*>(other);
        EXPECT_TRUE(reader.equal(a, b));
        EXPECT_EQ(reader.hash(a, step::secret_of(3)), reader.hash(b, step::secret_of(3)));
    }
}

}  // namespace
}  // namespace th_test
