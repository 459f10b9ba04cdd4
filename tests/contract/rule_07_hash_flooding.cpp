// Contract rule 7 against keys chosen to collide: without a table's seed, an attacker cannot make
// its probes longer than those of random keys. Counts probed buckets; no clock is involved.
#include "coords/tables/coord_index.hpp"
#include "support/collisions.hpp"
#include "support/coords.hpp"
#include "support/fixtures.hpp"
#include "table/table.hpp"

namespace th_test {
namespace {

using tensorhash::coords::CoordIndex;
using tensorhash::table::ProbeLengths;
using tensorhash::table::Table;

constexpr std::size_t rows_made = 20000;
constexpr std::uint64_t their_seed = 42;
constexpr std::uint64_t our_seeds[] = {0, 1, 43, 0x9e3779b97f4a7c15u, ~std::uint64_t{0}};

/// Probe lengths of lookups of these keys, in a table that holds them all.
ProbeLengths probe_lengths(Tensor const& keys, std::uint64_t seed) {
    Element const key{keys.dtype(), Shape(keys.shape().begin() + 1, keys.shape().end())};
    auto const rows = static_cast<std::size_t>(keys.shape()[0]);
    Table table(key, {}, rows, seed);
    std::vector<std::uint32_t> buf_indices(rows);
    std::vector<unsigned char> mask(rows);
    auto const* bytes = static_cast<unsigned char const*>(keys.data());
    table.activate(bytes, rows, {buf_indices.data(), mask.data()});
    EXPECT_EQ(table.size(), rows) << "the keys of this test are distinct";
    return table.probe_lengths(bytes, rows);
}

Tensor random_like(Tensor const& keys) {
    Tensor out = keys.clone();
    Random random(7);
    auto* bytes = static_cast<unsigned char*>(out.data());
    for (std::size_t at = 0; at < out.bytes(); ++at)
        bytes[at] = static_cast<unsigned char>(random.next());
    return out;
}

void expect_ordinary(Tensor const& keys, std::string const& what) {
    Tensor const random = random_like(keys);
    for (std::uint64_t const seed : our_seeds) {
        ProbeLengths const usual = probe_lengths(random, seed);
        ProbeLengths const crafted = probe_lengths(keys, seed);
        EXPECT_LE(crafted.mean, 3 * usual.mean) << what << ", seed " << seed;
        EXPECT_LE(crafted.longest, 3 * usual.longest) << what << ", seed " << seed;
    }
}

Tensor words(std::size_t rows, std::uint64_t (*word)(std::uint64_t)) {
    Tensor out = Tensor::empty({static_cast<std::int64_t>(rows)}, Dtype::UInt64);
    auto const to = out.as_mutable<std::uint64_t>();
    for (std::size_t i = 0; i < rows; ++i) to[i] = word(i);
    return out;
}

TEST(Rule07Flooding, narrow_keys_crafted_for_another_seed_are_ordinary_keys) {
    Tensor const keys = same_home_keys(rows_made, inner_home, 1, step::secret_of(their_seed));
    EXPECT_GT(
        probe_lengths(same_home_keys(1000, inner_home, 1, step::secret_of(their_seed)), their_seed)
            .mean,
        50);
    expect_ordinary(keys, "crafted for another seed");
    expect_ordinary(same_home_keys(rows_made, inner_home, 1, {}),
                    "crafted for the published constants");
}

TEST(Rule07Flooding, wide_keys_crafted_for_another_seed_are_ordinary_keys) {
    for (std::size_t width : {12u, 16u, 24u, 37u, 64u, 128u}) {
        auto const secret = step::secret_of(their_seed);
        EXPECT_GT(probe_lengths(same_hash_keys(width, 1000, 1, secret), their_seed).mean, 50);
        expect_ordinary(same_hash_keys(width, rows_made, 1, secret),
                        "width " + std::to_string(width));
        expect_ordinary(same_hash_keys(width, rows_made, 1, {}),
                        "published constants, width " + std::to_string(width));
    }
}

/// Keys of `width` bytes that share one base. If bit w of row i is set, word w is flipped by `flip`
/// and the next word by `cancel`.
Tensor flipped_keys(std::size_t width, std::uint64_t flip, std::uint64_t cancel) {
    std::size_t const places = width / 8 - 1;
    std::size_t const rows = std::size_t{1} << std::min<std::size_t>(places, 15);
    return wide_keys(width, rows, [=](void* out, std::size_t row) {
        std::vector<std::uint64_t> key(width / 8, 0x0123456789abcdefu);
        for (std::size_t at = 0; at < places; ++at)
            if ((row >> at & 1) != 0) {
                key[at] ^= flip;
                key[at + 1] ^= cancel;
            }
        std::memcpy(out, key.data(), width);
    });
}

TEST(Rule07Flooding, differences_between_words_do_not_cancel_under_any_seed) {
    constexpr std::uint64_t top = std::uint64_t{1} << 63;
    for (std::size_t width : {64u, 128u}) {
        // An earlier fold_in (shift, public multiplication, shift) let this pair cancel.
        expect_ordinary(flipped_keys(width, 0x8000000080000000u, top | top >> 29), "both halves");
        // A flipped top bit survives any multiplication; the rotation moves it to the middle of the
        // word.
        for (std::uint64_t cancel : {top, top >> 31, top >> 32, std::uint64_t{1}, top | top >> 32})
            expect_ordinary(flipped_keys(width, top, cancel), "top bit");
        // This would cancel if the second multiplier were the published one.
        expect_ordinary(flipped_keys(width, top, step::HashSecret{}.second << 31), "published");
    }
}

TEST(Rule07Flooding,
     differences_that_survive_the_first_multiplication_do_not_make_narrow_keys_collide) {
    // After the first shift these keys differ only in their top bits, whatever the start value.
    expect_ordinary(words(1 << 15, [](std::uint64_t i) { return i << 49; }), "top bits");
    expect_ordinary(words(1 << 15,
                          [](std::uint64_t i) {
                              std::uint64_t const x = i << 49;
                              return x ^ x >> 30 ^ x >> 60;
                          }),
                    "top bits behind the shift");
    expect_ordinary(words(1 << 15,
                          [](std::uint64_t i) {
                              std::uint64_t const x = i << 20;
                              return x ^ x >> 30 ^ x >> 60;
                          }),
                    "middle bits behind the shift");
}

/// Rows of coordinates; their packed keys share one slot in tables with this secret.
Coords colliding_coords(std::size_t rows, step::HashSecret const& secret) {
    Coords made;
    for (std::uint64_t number = 1; made.size() < rows; ++number) {
        std::uint64_t const key = step::unavalanche(number << 32 | 3, secret);
        if (key >> 63 != 0) {
            std::int32_t b, x, y, z;
            step::unpack_key_4d(key, b, x, y, z);
            made.push_back({b, x, y, z});
        }
    }
    return made;
}

std::uint32_t longest_probe(Coords const& rows, std::uint64_t seed) {
    tensorhash::coords::CoordRows const table_rows{tensor_of<std::int32_t>(rows, 4), rows.size(),
                                                   4};
    CoordIndex const index(table_rows, {.seed = seed});
    EXPECT_EQ(index.distinct(), rows.size());
    return index.packed()->view().longest;
}

TEST(Rule07Flooding, packed_coordinates_crafted_for_another_seed_are_ordinary_ones) {
    constexpr std::size_t count = 2000;
    Coords const random = random_rows(count, 4, -100000, 100000, 1);
    for (step::HashSecret const& secret : {step::secret_of(their_seed), step::HashSecret{}}) {
        Coords const crafted = colliding_coords(count, secret);
        for (std::uint64_t const seed : our_seeds)
            EXPECT_LE(longest_probe(crafted, seed), 3 * longest_probe(random, seed)) << seed;
    }
    EXPECT_GE(longest_probe(colliding_coords(count, step::secret_of(their_seed)), their_seed),
              count / 2);
}

TEST(Rule07Flooding, a_table_keeps_its_seed_and_a_copy_has_it_too) {
    Table table({Dtype::Int64, {}}, {{Dtype::Int64, {}}}, 0, their_seed);
    Tensor const keys = words(5000, [](std::uint64_t i) { return i; });
    std::vector<std::uint32_t> buf_indices(5000);
    std::vector<unsigned char> mask(5000);
    auto const* bytes = static_cast<unsigned char const*>(keys.data());
    table.activate(bytes, 5000, {buf_indices.data(), mask.data()});  // grows
    EXPECT_EQ(table.seed(), their_seed);
    table.reserve(100000);
    EXPECT_EQ(table.seed(), their_seed);
    table.erase(bytes, 100, mask.data());
    std::vector<std::int32_t> moved(table.capacity());
    table.compact(moved.data());
    EXPECT_EQ(table.seed(), their_seed);
    EXPECT_EQ(Table(table).seed(), their_seed);
    Table(table).validate();
}

/// All results of a fixed program on a table with this seed.
std::string answers_of(Element const& key, std::uint64_t seed) {
    HashMap map = make_map(Capacity{0}, key, {{Dtype::Int64, {}}}, seed);
    std::string out;
    auto const note = [&](Located const& located) {
        out += bytes_of(located.indices) + bytes_of(located.mask);
    };
    Ids ids(9000);
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = i * 7 % 6000;
    Tensor const all = make_keys(key, ids);
    Tensor const some = make_keys(key, Ids(ids.begin() + 100, ids.begin() + 3000));
    Tensor const values = Tensor::zeros({9000}, Dtype::Int64);
    note(map.insert(all, {values}));
    out += bytes_of(map.erase(some));
    note(map.find(all));
    note(map.activate(some));
    out += bytes_of(map.keys()) + bytes_of(map.active_buf_indices()) + bytes_of(map.compact());
    map.validate();
    return out + bytes_of(map.to_bytes()) + bytes_of(map.clone().to_bytes());
}

TEST(Rule07Flooding, no_answer_and_no_file_depends_on_the_seed) {
    for (KeyKind const& kind : sample_kinds()) {
        std::string const first = answers_of(kind.element, 0);
        for (std::uint64_t const seed : {std::uint64_t{1}, their_seed, ~std::uint64_t{0}})
            EXPECT_TRUE(same_bytes(answers_of(kind.element, seed), first)) << kind.name;
    }
}

}  // namespace
}  // namespace th_test
