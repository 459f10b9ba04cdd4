// Inputs that broke other libraries: entries that reuse the place of others, and sums over many
// equal keys.
#include <map>

#include "support/batches.hpp"
#include "support/fixtures.hpp"

namespace th_test {
namespace {

using tensorhash::Admitted;
using tensorhash::BoundedHashMap;
using tensorhash::Eviction;

Tensor int64s(std::vector<std::int64_t> const& numbers) { return Tensor::from(numbers); }

BoundedHashMap bounded(std::int64_t capacity, Eviction eviction) {
    return BoundedHashMap(Capacity{capacity}, {Dtype::Int64, {}}, {{Dtype::Int64, {}}}, eviction);
}

TEST(RecycledEntries, a_recycled_entry_keeps_no_old_score) {
    BoundedHashMap table = bounded(3, Eviction::Score);
    table.insert(int64s({1, 2, 3}), {int64s({1, 2, 3})}, int64s({1000, 5, 6}));
    table.erase(int64s({1}));
    Admitted again = table.insert(int64s({4}), {int64s({4})}, int64s({-7}));
    EXPECT_EQ(to_vector<std::int32_t>(again.indices), std::vector<std::int32_t>{0});
    EXPECT_EQ(to_vector<std::int64_t>(table.scores()), (std::vector<std::int64_t>{-7, 5, 6}));
    Admitted next = table.insert(int64s({5}), {int64s({5})}, int64s({0}));
    EXPECT_EQ(to_vector<std::int64_t>(next.evicted.keys), std::vector<std::int64_t>{4})
        << "by its own score, not by that of key 1";
    EXPECT_EQ(to_vector<std::int64_t>(next.evicted.scores), std::vector<std::int64_t>{-7});
    table.validate();
}

TEST(RecycledEntries, a_recycled_entry_keeps_no_old_use) {
    BoundedHashMap table = bounded(3, Eviction::Lru);
    table.insert(int64s({1, 2, 3}), {int64s({1, 2, 3})});
    for (int i = 0; i < 5; ++i) table.get_and_touch(int64s({1}));
    table.erase(int64s({1}));
    table.insert(int64s({4}), {int64s({4})});
    table.get_and_touch(int64s({2, 3}));
    Admitted next = table.insert(int64s({5}), {int64s({5})});
    EXPECT_EQ(to_vector<std::int64_t>(next.evicted.keys), std::vector<std::int64_t>{4});
    EXPECT_EQ(to_vector<std::int64_t>(table.scores()), (std::vector<std::int64_t>{10, 9, 9}));
    table.validate();
}

TEST(RecycledEntries, a_cleared_or_compacted_table_forgets_scores_and_uses) {
    for (bool compact : {false, true}) {
        BoundedHashMap table = bounded(2, Eviction::Score);
        table.insert(int64s({1, 2}), {int64s({1, 2})}, int64s({100, 200}));
        if (compact) {
            table.erase(int64s({1}));
            table.compact();
            table.insert(int64s({7}), {int64s({7})}, int64s({-1}));
        } else {
            table.clear();
            table.insert(int64s({7, 2}), {int64s({7, 2})}, int64s({-1, 0}));
        }
        Admitted next = table.insert(int64s({8}), {int64s({8})}, int64s({50}));
        EXPECT_EQ(to_vector<std::int64_t>(next.evicted.keys), std::vector<std::int64_t>{7});
        table.validate();
    }
}

// Each value is computed from its key. A table that confused slots with rows, or old entries with
// new ones, would mix them up.
TEST(RecycledEntries, a_bounded_table_never_mixes_up_slots_and_rows) {
    for (Eviction eviction : {Eviction::Lru, Eviction::Score}) {
        for (int threads : thread_counts) {
            Threads const scope(threads);
            BoundedHashMap table = bounded(777, eviction);
            Random random(3);
            for (int round = 0; round < 60; ++round) {
                std::vector<std::int64_t> keys(1 + random.below(round % 10 == 0 ? 9000 : 900));
                for (std::int64_t& key : keys) key = static_cast<std::int64_t>(random.below(3000));
                std::vector<std::int64_t> values = keys, scores = keys;
                for (std::size_t i = 0; i < keys.size(); ++i) {
                    values[i] = keys[i] * 1000003 + 1;
                    scores[i] = keys[i] % 17;
                }
                if (round % 3 == 2) {
                    table.erase(int64s(keys));
                    continue;
                }
                Admitted got =
                    table.insert(int64s(keys), {int64s(values)},
                                 eviction == Eviction::Score ? int64s(scores) : Tensor{});
                auto left = to_vector<std::int64_t>(got.evicted.keys);
                auto gone = to_vector<std::int64_t>(got.evicted.values[0]);
                for (std::size_t i = 0; i < left.size(); ++i)
                    ASSERT_EQ(gone[i], left[i] * 1000003 + 1);
                auto indices = to_vector<std::int32_t>(got.indices);
                Tensor const key_buffer = table.key_tensor();
                Tensor const value_buffer = table.value_tensor();
                auto const there = key_buffer.as<std::int64_t>();
                auto const stored = value_buffer.as<std::int64_t>();
                for (std::size_t i = 0; i < indices.size(); ++i) {
                    if (indices[i] < 0) continue;
                    auto const at = static_cast<std::size_t>(indices[i]);
                    ASSERT_EQ(there[at], keys[i]);
                    ASSERT_EQ(stored[at], values[i]);
                }
                EXPECT_EQ(to_vector<std::int32_t>(table.find(int64s(keys)).indices), indices);
            }
            table.validate();
        }
    }
}

template <class T>
void sums_are_exact(T (*value)(std::size_t row)) {
    constexpr std::size_t kRows = 300'000;
    constexpr std::int64_t kKeys = 3;
    std::vector<std::int64_t> keys(kRows);
    std::vector<T> values(kRows);
    std::map<std::int64_t, T> want;
    for (std::size_t row = 0; row < kRows; ++row) {
        // Long runs of one key, then alternating keys.
        keys[row] = static_cast<std::int64_t>(row < kRows / 2 ? 1 : row % kKeys);
        values[row] = value(row);
        want[keys[row]] = static_cast<T>(want[keys[row]] + values[row]);
    }
    for (int threads : thread_counts) {
        Threads const scope(threads);
        HashMap map = make_map(Capacity{0}, {Dtype::Int64, {}}, {{tensorhash::dtype_of<T>, {}}});
        map.accumulate(int64s(keys), {Tensor::from(values)}, {tensorhash::Reduce::Sum});
        for (auto const& [key, sum] : want)
            EXPECT_EQ(to_vector<T>(map.get(int64s({key}))[0])[0], sum) << threads << " threads";
    }
}

TEST(GroupedSums, of_integers_are_exact_with_many_equal_keys) {
    // Sums beyond 2^53, where double skips integers.
    sums_are_exact<std::int64_t>([](std::size_t row) {
        return (std::int64_t{1} << 44) +
               static_cast<std::int64_t>(row % 7) * (row % 2 == 0 ? 1 : -1);
    });
    sums_are_exact<std::uint64_t>(
        [](std::size_t row) { return (std::uint64_t{1} << 45) + row % 5; });
    // Sums beyond 2^24, where float skips integers.
    sums_are_exact<std::int32_t>(
        [](std::size_t row) { return static_cast<std::int32_t>(row % 1000); });
    sums_are_exact<std::uint32_t>(
        [](std::size_t row) { return static_cast<std::uint32_t>(row % 9000); });
}

}  // namespace
}  // namespace th_test
