// Contract rule 7: structured keys cost as much as random keys, measured in probed buckets, not in
// time. Keys made to collide still give the right results.
#include <functional>

#include "support/collisions.hpp"
#include "support/fixtures.hpp"
#include "table/table.hpp"

namespace th_test {
namespace {

TEST(Rule07Keys, the_keys_of_this_test_do_collide) {
    for (std::size_t width : {9u, 12u, 16u, 24u, 37u, 64u}) {
        Tensor keys = same_hash_keys(width, 50);
        auto const* bytes = static_cast<unsigned char const*>(keys.data());
        step::WideAny reader(step::KeyFormat{static_cast<std::uint32_t>(width), 0});
        std::uint64_t const hash = reader.hash(bytes, test_secret);
        for (std::size_t i = 1; i < 50; ++i) {
            ASSERT_EQ(reader.hash(bytes + i * width, test_secret) << 3, hash << 3) << width;
            ASSERT_EQ(reader.hash(bytes + i * width, test_secret) == hash, i % 8 == 0) << width;
            ASSERT_FALSE(reader.equal(bytes + i * width, bytes)) << width;
        }
    }
}

/// Probe lengths of lookups of these keys, in a table that holds them all.
tensorhash::table::ProbeLengths probe_lengths(Tensor const& keys, std::int64_t capacity,
                                              std::uint64_t seed = test_seed) {
    Element key{keys.dtype(), Shape(keys.shape().begin() + 1, keys.shape().end())};
    tensorhash::table::Table table(key, {}, static_cast<std::uint64_t>(capacity), seed);
    auto rows = static_cast<std::size_t>(keys.shape()[0]);
    std::vector<std::uint32_t> buf_indices(rows);
    std::vector<unsigned char> mask(rows);
    auto const* bytes = static_cast<unsigned char const*>(keys.data());
    table.activate(bytes, rows, {buf_indices.data(), mask.data()});
    EXPECT_EQ(table.size(), rows) << "the keys of this test are distinct";
    return table.probe_lengths(bytes, rows);
}

constexpr std::int64_t structured_rows = 110592;  // 48^3

template <class T, class Make>
Tensor made_keys(Shape element, Make make) {
    Tensor out = Tensor::empty(rows_shape(structured_rows, {tensorhash::dtype_of<T>, element}),
                               tensorhash::dtype_of<T>);
    auto* at = static_cast<T*>(out.data());
    auto width = static_cast<std::size_t>(tensorhash::num_elements(element));
    for (std::uint64_t i = 0; i < structured_rows; ++i) make(i, at + i * width);
    return out;
}

Tensor words(std::function<std::uint64_t(std::uint64_t)> word) {
    return made_keys<std::uint64_t>({1},
                                    [&](std::uint64_t i, std::uint64_t* key) { *key = word(i); });
}

template <class T>
Tensor voxels(T low, T step) {
    return made_keys<T>({3}, [&](std::uint64_t i, T* key) {
        key[0] = low + static_cast<T>(i / 2304) * step;
        key[1] = low + static_cast<T>(i / 48 % 48) * step;
        key[2] = low + static_cast<T>(i % 48) * step;
    });
}

struct Structured {
    std::string name;
    Tensor keys;
};

std::vector<Structured> structured_keys() {
    std::vector<Structured> out = {
        {"sequence", words([](std::uint64_t i) { return i; })},
        {"negative sequence", words([](std::uint64_t i) { return ~i; })},
        {"i << 32", words([](std::uint64_t i) { return i << 32; })},
        {"float64 bits of integers",
         words([](std::uint64_t i) { return std::bit_cast<std::uint64_t>(double(i)); })},
        {"packed coordinates",
         words([](std::uint64_t i) { return (i / 2304) << 42 | (i / 48 % 48) << 21 | (i % 48); })},
        {"packed coordinates with a sign offset", words([](std::uint64_t i) {
             return (i / 2304 + 131048) << 36 | (i / 48 % 48 + 131048) << 18 | (i % 48 + 131048);
         })},
        {"bit reversed", words([](std::uint64_t i) {
             std::uint64_t out_bits = 0;
             for (int bit = 0; bit < 20; ++bit) out_bits |= (i >> bit & 1) << (63 - bit);
             return out_bits;
         })},
        {"one octant", voxels<std::int32_t>(0, 1)},
        {"negative octant", voxels<std::int32_t>(-200, 1)},
        {"all octants", voxels<std::int32_t>(-24, 1)},
        {"coarse voxels", voxels<std::int32_t>(0, 4096)},
        {"int64 voxels", voxels<std::int64_t>(-24, 1)},
        {"integer-valued float32 points", voxels<float>(-24, 1)},
        {"quarter-valued float64 points", voxels<double>(-24, 0.25)},
    };
    for (int shift = 1; shift <= 47; shift += 2)
        out.push_back({"multiples of 2^" + std::to_string(shift),
                       words([=](std::uint64_t i) { return i << shift; })});
    return out;
}

/// Random keys of the same dtype and shape.
Tensor random_like(Tensor const& keys) {
    Tensor out = keys.clone();
    Random random(99);
    if (keys.dtype() == Dtype::Float32)
        for (float& x : out.as_mutable<float>()) x = static_cast<float>(random.next() >> 8);
    else if (keys.dtype() == Dtype::Float64)
        for (double& x : out.as_mutable<double>()) x = static_cast<double>(random.next() >> 8);
    else
        for (std::size_t at = 0; at + 4 <= out.bytes(); at += 4) {
            auto word = static_cast<std::uint32_t>(random.next());
            std::memcpy(static_cast<char*>(out.data()) + at, &word, 4);
        }
    return out;
}

TEST(Rule07Keys, structured_keys_probe_at_most_three_times_the_buckets_of_random_keys) {
    Threads threads(2);
    for (std::int64_t capacity : {std::int64_t{0}, structured_rows})
        for (Structured const& structured : structured_keys()) {
            auto random = probe_lengths(random_like(structured.keys), capacity);
            auto lengths = probe_lengths(structured.keys, capacity);
            EXPECT_LT(random.mean, 2) << structured.name;
            EXPECT_LE(lengths.mean, 3 * random.mean) << structured.name;
            EXPECT_LE(lengths.longest, 3 * random.longest) << structured.name;
        }
}

TEST(Rule07Keys, structured_keys_probe_no_more_buckets_under_other_seeds) {
    Threads threads(2);
    for (Structured const& structured : structured_keys()) {
        Tensor const random = random_like(structured.keys);
        for (std::uint64_t seed : {0ull, 2ull, 0x123456789abcdefull, ~0ull}) {
            auto const usual = probe_lengths(random, structured_rows, seed);
            auto const lengths = probe_lengths(structured.keys, structured_rows, seed);
            EXPECT_LE(lengths.mean, 3 * usual.mean) << structured.name << ", seed " << seed;
            EXPECT_LE(lengths.longest, 3 * usual.longest) << structured.name << ", seed " << seed;
        }
    }
}

TEST(Rule07Keys, colliding_keys_do_lengthen_the_measured_probes) {
    auto lengths = probe_lengths(same_home_keys(1000), 0);
    EXPECT_GT(lengths.mean, 50);
    EXPECT_GT(lengths.longest, 150u);
}

class Rule07Collisions : public OverThreads {};
TH_OVER_THREADS(Rule07Collisions);

/// Inserts, erases and re-inserts parts of `keys` in rounds and checks against the oracle.
void churn(Twin& twin, std::function<Tensor(std::size_t, std::uint64_t)> keys, std::size_t rows) {
    twin.insert(keys(rows, 1), twin.columns(rows, 1));
    twin.insert(keys(rows, 1 + rows / 2), twin.columns(rows, 2));
    twin.find(keys(2 * rows, 1));
    twin.check();
    for (std::uint64_t round = 0; round < 4; ++round) {
        twin.erase(keys(rows / 2, 1 + round * rows / 3));
        twin.find(keys(2 * rows, 1));
        twin.insert(keys(rows, 1 + round * rows / 4), twin.columns(rows, round));
        twin.find(keys(2 * rows, 1));
        twin.check();
    }
}

TEST_P(Rule07Collisions, keys_of_one_home_bucket_are_all_told_apart) {
    for (std::uint32_t home : {first_home, inner_home, last_home}) {
        Twin twin(0, {Dtype::Int64, {1}}, {{Dtype::Int64, {}}});
        churn(
            twin,
            [home](std::size_t rows, std::uint64_t first) {
                return same_home_keys(rows, home, first);
            },
            600);
    }
}

TEST_P(Rule07Collisions, wide_keys_of_one_hash_are_all_told_apart) {
    for (std::size_t width : {10u, 12u, 16u, 24u, 37u}) {
        Twin twin(0, {Dtype::UInt8, {static_cast<std::int64_t>(width)}}, {{Dtype::Int64, {}}});
        churn(
            twin,
            [width](std::size_t rows, std::uint64_t first) {
                return same_hash_keys(width, rows, first);
            },
            300);
    }
}

TEST_P(Rule07Collisions, a_large_batch_in_few_home_buckets) {
    Twin twin(0, {Dtype::Int64, {1}}, {{Dtype::Int64, {}}});
    Tensor keys = Tensor::empty({16384, 1}, Dtype::Int64);
    auto* words = static_cast<std::uint64_t*>(keys.data());
    for (std::uint64_t i = 0; i < 16384; ++i) {
        std::uint64_t const number = i * 37 % 5000;
        auto const home = static_cast<std::uint32_t>(number / 157) << 8;
        write_same_home_key(words + i, last_home - home, number);
    }
    twin.insert(keys, twin.columns(16384, 1));
    twin.erase(keys);
    twin.insert(keys, twin.columns(16384, 2));
    twin.check();
}

TEST_P(Rule07Collisions, a_large_batch_of_wide_keys_in_one_home_bucket) {
    // Enough rows for several threads, and every key several times.
    constexpr std::size_t rows = 16384;
    Twin twin(0, {Dtype::UInt8, {12}}, {{Dtype::Int64, {}}});
    Tensor const keys = wide_keys(12, rows, [](void* out, std::size_t i) {
        std::uint64_t const number = i * 37 % 2000;
        write_key_of_hash(out, 12, number % 64 << 58 | 0x6789abcdef0u, number);
    });
    twin.insert(keys, twin.columns(rows, 1));
    twin.find(keys);
    twin.erase(keys);
    twin.insert(keys, twin.columns(rows, 2));
    twin.check();
}

TEST_P(Rule07Collisions, wide_keys_that_hash_to_the_empty_or_the_erased_mark) {
    for (std::size_t width : {12u, 16u, 24u}) {
        Twin twin(0, {Dtype::UInt8, {static_cast<std::int64_t>(width)}}, {{Dtype::Int64, {}}});
        churn(
            twin,
            [width](std::size_t rows, std::uint64_t first) {
                return wide_keys(width, rows, [=](void* out, std::size_t i) {
                    write_key_of_hash(out, width, (first + i) % 4, first + i);
                });
            },
            100);
    }
}

TEST_P(Rule07Collisions, reinserting_over_a_tombstone_stores_a_key_once) {
    // A narrow bucket has five slots. More keys with one home bucket probe past it, so its erased
    // slots stay marked as erased.
    Twin twin(64, {Dtype::Int64, {1}}, {});
    for (std::uint64_t k = 1; k <= 40; ++k) twin.insert(same_home_keys(1, inner_home, k), {});
    for (std::uint64_t k = 1; k <= 30; ++k) {
        twin.erase(same_home_keys(1, inner_home, k));
        twin.insert(same_home_keys(40 - k, inner_home, k + 1), {});
        EXPECT_EQ(twin.table.size(), 40 - static_cast<std::int64_t>(k));
        twin.check();
    }
}

}  // namespace
}  // namespace th_test
