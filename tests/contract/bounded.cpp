// Bounded tables against an oracle that takes one row after the other: which entry leaves, when,
// and what the call reports.
#include <algorithm>
#include <cstdio>

#include "support/bounded_oracle.hpp"
#include "support/fixtures.hpp"

namespace th_test {
namespace {

using tensorhash::Admitted;
using tensorhash::BoundedHashMap;

Element const key_element{Dtype::Int64, {}};

Tensor int64s(Ids const& ids) {
    return Tensor::from(std::vector<std::int64_t>(ids.begin(), ids.end()));
}

std::vector<std::int64_t> random_scores(std::size_t rows, std::uint64_t below, std::uint64_t seed) {
    std::vector<std::int64_t> scores;
    for (std::uint64_t id : random_ids(rows, below, seed))
        scores.push_back(static_cast<std::int64_t>(id) - static_cast<std::int64_t>(below / 2));
    return scores;
}

/// A table and its oracle: every call goes to both.
struct Pair {
    Pair(std::size_t capacity, Eviction how, Element value_element)
        : value(value_element), eviction(how),
          table(Capacity{static_cast<std::int64_t>(capacity)}, key_element, {value}, how),
          oracle(capacity, how, value) {}

    Admitted accumulate(Ids const& ids, Reduce how, std::uint64_t seed, std::uint64_t spread = 50) {
        Tensor values = make_finite_values(value, ids.size(), seed);
        std::vector<std::int64_t> scores;
        if (eviction == Eviction::Score) scores = random_scores(ids.size(), spread, seed + 1);
        Admitted got = table.accumulate(int64s(ids), {values}, {how}, score_tensor(scores));
        auto want = oracle.accumulate(ids, rows_of(values, value), how, scores);
        require_equal(mask_of(got.mask), want.mask, "mask");
        require_equal(to_vector<std::int32_t>(got.indices), want.indices, "indices");
        require_equal(bytes_of(got.evicted.keys), bytes_of(int64s(want.gone.keys)), 8,
                      "evicted keys");
        require_equal(bytes_of(got.evicted.values[0]), want.gone.values, value.bytes(),
                      "evicted values");
        require_equal(to_vector<std::int64_t>(got.evicted.scores), want.gone.scores,
                      "evicted scores");
        return got;
    }
    Tensor score_tensor(std::vector<std::int64_t> const& scores) const {
        return eviction == Eviction::Score ? Tensor::from(scores) : Tensor{};
    }

    void touch(Ids const& ids, std::uint64_t seed, bool with_scores) {
        std::vector<std::int64_t> scores;
        bool given = with_scores && eviction == Eviction::Score;
        if (given) scores = random_scores(ids.size(), 50, seed);
        Tensor plain = table.get(int64s(ids))[0];
        Tensor got =
            table.get_and_touch(int64s(ids), {}, given ? Tensor::from(scores) : Tensor{})[0];
        oracle.touch(ids, scores);
        EXPECT_TRUE(same_bytes(got, plain));
    }

    void check() const {
        table.validate();
        require_equal(table.size(), static_cast<std::int64_t>(oracle.entries.size()), "size");
        require_equal(static_cast<std::int64_t>(table.clock()),
                      static_cast<std::int64_t>(oracle.clock), "clock");
        Ids keys;
        std::vector<std::int32_t> indices;
        std::string values;
        std::vector<std::int64_t> scores;
        for (auto const& [index, key] : oracle.listed()) {
            keys.push_back(key);
            indices.push_back(index);
            values += oracle.entries.at(key).value;
            scores.push_back(oracle.entries.at(key).score);
        }
        require_equal(to_vector<std::int32_t>(table.active_buf_indices()), indices, "indices");
        require_equal(bytes_of(table.keys()), bytes_of(int64s(keys)), 8, "keys");
        require_equal(bytes_of(table.items().values[0]), values, value.bytes(), "values");
        require_equal(to_vector<std::int64_t>(table.scores()), scores, "scores");
    }

    Element value;
    Eviction eviction;
    BoundedHashMap table;
    BoundedOracle oracle;
};

class Bounded : public EachEviction {};
INSTANTIATE_TEST_SUITE_P(Evictions, Bounded, ::testing::ValuesIn(EachEviction::all()),
                         EachEviction::name);

TEST_P(Bounded, random_programs_agree_with_the_oracle) {
    constexpr Reduce hows[] = {Reduce::First, Reduce::Last, Reduce::Sum, Reduce::Max};
    for (std::size_t capacity : {1u, 2u, 7u, 60u}) {
        Pair pair(capacity, eviction(), {Dtype::Float32, {3}});
        Random random(capacity);
        for (std::uint64_t round = 0; round < 120; ++round) {
            Ids ids = random_ids(random.below(3 * capacity + 5), 2 * capacity + 3, round);
            std::uint64_t what = random.below(10);
            if (what < 6)
                pair.accumulate(ids, hows[random.below(4)], round);
            else if (what < 8)
                pair.touch(ids, round, random.one_in(2));
            else
                require_equal(mask_of(pair.table.erase(int64s(ids))), pair.oracle.erase(ids),
                              "erase");
            pair.check();
        }
    }
}

TEST_P(Bounded, batches_for_many_threads_agree_with_the_oracle) {
    Pair pair(1500, eviction(), {Dtype::Int32, {}});
    for (std::uint64_t round = 0; round < 6; ++round)
        pair.accumulate(random_ids(6000, round % 2 == 0 ? 1600 : 4000, round),
                        round == 3 ? Reduce::First : Reduce::Sum, round, 100000);
    pair.check();
}

TEST_P(Bounded, a_batch_larger_than_the_capacity_acts_row_by_row) {
    Pair pair(10, eviction(), {Dtype::Int64, {}});
    Admitted got = pair.accumulate(sequence(100), Reduce::First, 1);
    pair.check();
    EXPECT_EQ(pair.table.size(), 10);
    EXPECT_EQ(got.evicted.keys.size(), 90) << "every key that left is reported";
}

TEST_P(Bounded, clones_and_loaded_tables_behave_like_the_original_and_compact_keeps_it_valid) {
    Pair pair(50, eviction(), {Dtype::Float64, {2}});
    for (std::uint64_t round = 0; round < 4; ++round)
        pair.accumulate(random_ids(70, 90, round), Reduce::Last, round);
    std::string name = testing::TempDir() + "bounded" + std::to_string(std::get<1>(GetParam())) +
                       (eviction() == Eviction::Lru ? "l" : "s") + ".thash";
    pair.table.save(name);
    BoundedHashMap clone = pair.table.clone();
    BoundedHashMap loaded = BoundedHashMap::load(name);
    std::remove(name.c_str());
    EXPECT_EQ(loaded.eviction(), eviction());
    EXPECT_TRUE(same_bytes(loaded.to_bytes(), pair.table.to_bytes()));
    for (BoundedHashMap* table : {&clone, &loaded}) {
        Pair other(50, eviction(), pair.value);
        other.table = std::move(*table);
        other.oracle = pair.oracle;
        for (std::uint64_t round = 10; round < 13; ++round)
            other.accumulate(random_ids(70, 90, round), Reduce::Sum, round);
        other.check();
    }
    require_equal(mask_of(pair.table.erase(int64s({1, 2, 3}))), pair.oracle.erase({1, 2, 3}),
                  "erase");
    pair.table.compact();
    pair.table.validate();
    EXPECT_EQ(to_vector<std::int32_t>(pair.table.active_buf_indices()).back() + 1,
              pair.table.size());
}

TEST(BoundedBits, are_the_same_on_any_number_of_threads) {
    for (Eviction eviction : {Eviction::Lru, Eviction::Score}) {
        std::string first;
        for (int n : looped_thread_counts()) {
            Threads threads(n);
            BoundedHashMap table(Capacity{20000}, {Dtype::Int32, {3}}, {{Dtype::Float32, {2}}},
                                 eviction);
            std::string seen;
            for (std::uint64_t round = 0; round < 4; ++round) {
                Tensor keys = make_keys({Dtype::Int32, {3}}, random_ids(30000, 60000, round));
                Tensor values = make_finite_values({Dtype::Float32, {2}}, 30000, round);
                Admitted got = table.accumulate(
                    keys, {values}, {Reduce::Sum},
                    eviction == Eviction::Lru ? Tensor{}
                                              : Tensor::from(random_scores(30000, 1000, round)));
                seen += bytes_of(got.indices) + bytes_of(got.mask) + bytes_of(got.evicted.keys) +
                        bytes_of(got.evicted.values[0]) + bytes_of(got.evicted.scores);
            }
            table.validate();
            seen += bytes_of(table.to_bytes());
            if (first.empty()) first = seen;
            ASSERT_TRUE(same_bytes(seen, first)) << n << " threads";
        }
    }
}

TEST(BoundedReaders, find_contains_and_get_touch_nothing) {
    BoundedHashMap table(Capacity{3}, key_element, {{Dtype::Int64, {}}});
    table.insert(int64s({1, 2, 3}), {int64s({10, 20, 30})});
    std::string before = bytes_of(table.to_bytes());
    table.find(int64s({1, 9}));
    table.contains(int64s({1}));
    table.get(int64s({1, 1}));
    EXPECT_TRUE(same_bytes(table.to_bytes(), before));
    EXPECT_EQ(table.clock(), 1u);
    table.get_and_touch(int64s({1}));
    EXPECT_EQ(table.clock(), 2u);
    Admitted got = table.insert(int64s({4}), {int64s({40})});
    EXPECT_EQ(to_vector<std::int64_t>(got.evicted.keys), std::vector<std::int64_t>{2});
    EXPECT_EQ(to_vector<std::int64_t>(got.evicted.values[0]), std::vector<std::int64_t>{20});
    EXPECT_EQ(to_vector<std::int64_t>(got.evicted.scores), std::vector<std::int64_t>{1});
    EXPECT_EQ(to_vector<std::int32_t>(got.indices), std::vector<std::int32_t>{1});
}

TEST(BoundedScores, the_highest_scores_stay_and_a_lower_newcomer_is_reported) {
    BoundedHashMap table(Capacity{2}, key_element, {}, Eviction::Score);
    table.insert(int64s({1, 2}), {}, Tensor::from(std::vector<std::int64_t>{5, 7}));
    Admitted low = table.insert(int64s({3}), {}, Tensor::from(std::vector<std::int64_t>{4}));
    EXPECT_EQ(to_vector<std::int32_t>(low.indices), std::vector<std::int32_t>{-1});
    EXPECT_EQ(mask_of(low.mask), std::vector<std::uint8_t>{0});
    EXPECT_EQ(to_vector<std::int64_t>(low.evicted.keys), std::vector<std::int64_t>{3});
    Admitted equal = table.insert(int64s({3}), {}, Tensor::from(std::vector<std::int64_t>{5}));
    EXPECT_EQ(to_vector<std::int64_t>(equal.evicted.keys), std::vector<std::int64_t>{1})
        << "of equal scores the older leaves";
}

TEST(BoundedUpdate, steps_and_uses_the_keys_that_are_there) {
    using tensorhash::Sgd;
    BoundedHashMap table(Capacity{2}, key_element, {{Dtype::Float32, {}}});
    table.activate(int64s({1, 2}));
    table.update(int64s({1, 9, 1}), Tensor::from(std::vector<float>{1, 2, 3}), Sgd{1.0});
    Tensor weights = table.get(int64s({1}))[0];
    EXPECT_EQ(weights.as<float>()[0], -4.0f);
    Admitted got = table.activate(int64s({5}));
    EXPECT_EQ(to_vector<std::int64_t>(got.evicted.keys), std::vector<std::int64_t>{2});
    message_of<tensorhash::ValueError>([&] {
        table.update(int64s({1}), Tensor::from(std::vector<float>{1}), Sgd{},
                     {tensorhash::Missing::Insert, tensorhash::DuplicateKeys::InOrder, {}});
    });
}

TEST(BoundedErrors, change_nothing_and_name_the_argument) {
    auto refused = [](std::string const& part, auto call) {
        std::string text = message_of<tensorhash::ValueError>(call);
        EXPECT_NE(text.find(part), std::string::npos) << text;
    };
    refused("max_capacity: expected 1 to 2147483647 entries, got 0",
            [] { BoundedHashMap(Capacity{0}, key_element, {}); });
    BoundedHashMap lru(Capacity{2}, key_element, {{Dtype::Int64, {}}});
    BoundedHashMap scored(Capacity{2}, key_element, {{Dtype::Int64, {}}}, Eviction::Score);
    lru.insert(int64s({1, 2}), {int64s({1, 2})});
    std::string before = bytes_of(lru.to_bytes());
    refused("takes no scores", [&] { lru.insert(int64s({3}), {int64s({3})}, int64s({1})); });
    refused("values: expected 1 rows", [&] { lru.insert(int64s({3}), {int64s({3, 4})}); });
    refused("evicts by score", [&] { scored.insert(int64s({3}), {int64s({3})}); });
    refused("scores: expected 1 rows",
            [&] { scored.insert(int64s({3}), {int64s({3})}, int64s({1, 2})); });
    refused("eviction: expected", [] { tensorhash::eviction_from_name("fifo"); });
    EXPECT_TRUE(same_bytes(lru.to_bytes(), before));
}

TEST(BoundedFiles, damage_is_noticed) {
    BoundedHashMap table(Capacity{4}, key_element, {{Dtype::Int64, {}}}, Eviction::Score);
    table.insert(int64s({1, 2}), {int64s({1, 2})}, int64s({1, 2}));
    Tensor image = table.to_bytes();
    auto const bytes = static_cast<std::size_t>(image.size());
    for (std::size_t at = 0; at < bytes; ++at) {
        Tensor damaged = image.clone();
        static_cast<unsigned char*>(damaged.data())[at] ^= 0x20;
        EXPECT_THROW(BoundedHashMap::from_bytes(damaged), tensorhash::FormatError) << at;
        Tensor cut = Tensor::borrow(image.data(), {static_cast<std::int64_t>(at)}, Dtype::UInt8,
                                    image.owner());
        EXPECT_THROW(BoundedHashMap::from_bytes(cut), tensorhash::FormatError) << at;
    }
    EXPECT_THROW(BoundedHashMap::from_bytes(int64_map().to_bytes()), tensorhash::FormatError);
}

}  // namespace
}  // namespace th_test
