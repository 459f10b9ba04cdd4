// Contract rule 3: growth, reserve and erasing other keys never move an entry; only compact() does.
// Capacity counts distinct keys. Views taken before growth stay safe to use.
// Over 400 lines: one file proves one rule of the contract.
#include <algorithm>
#include <numeric>

#include "support/collisions.hpp"
#include "support/fixtures.hpp"
#include "support/views.hpp"
#include "tensorhash/memory.hpp"

namespace th_test {
namespace {

class Rule03 : public OverKinds {};

TEST_P(Rule03, growth_from_capacity_0_1_and_4_loses_nothing) {
    for (std::int64_t capacity : {0, 1, 4}) {
        Twin twin = this->twin(capacity);
        twin.find(sequence(10));
        for (std::uint64_t i = 0; i < 12; ++i) {
            twin.insert(sequence(1 + i / 4, 3 * i), i);
            twin.check();
        }
        twin.insert(sequence(few_rows, 20), 99);
        twin.find(sequence(2 * few_rows));
        twin.check();
    }
}

TEST_P(Rule03, indices_and_values_stay_through_reserve_and_growth) {
    Twin twin = this->twin(10);
    Tensor keys = twin.keys(sequence(100));
    std::vector<std::int32_t> before = indices_of(twin.insert(keys, twin.columns(100, 1)));
    twin.reserve(5000);
    EXPECT_EQ(indices_of(twin.find(keys)), before);
    twin.insert(sequence(7000, 100), 2);
    EXPECT_EQ(indices_of(twin.find(keys)), before);
    twin.check();
}

TEST_P(Rule03, erasing_other_keys_moves_no_entry) {
    Twin twin = this->twin(0);
    twin.insert(sequence(400));
    twin.find(sequence(100));
    twin.erase(sequence(300, 100));
    twin.find(sequence(100));
    twin.check();
}

TEST_P(Rule03, compact_moves_live_entries_down_and_returns_the_map) {
    Twin twin = this->twin(50);
    twin.insert(sequence(300));
    twin.erase(random_ids(200, 300, 1));
    std::int64_t capacity = twin.table.capacity();
    Tensor moved = twin.compact();
    EXPECT_EQ(moved.dtype(), Dtype::Int32);
    EXPECT_EQ(moved.shape(), (Shape{capacity}));
    EXPECT_EQ(twin.table.capacity(), capacity);
    twin.find(sequence(400));
    twin.check();
    twin.insert(sequence(100, 1000), 2);
    twin.check();
}

TEST_P(Rule03, a_clone_is_exact_and_independent) {
    Twin twin = this->twin(5);
    twin.insert(sequence(200), 1);
    twin.erase(random_ids(100, 200, 2));
    std::string before = bytes_of(twin.table.to_bytes());
    Twin copy = twin.clone();
    EXPECT_TRUE(same_bytes(copy.table.to_bytes(), before));
    copy.insert(sequence(300, 100), 3);
    copy.check();
    EXPECT_TRUE(same_bytes(twin.table.to_bytes(), before));
    twin.clear();
    twin.check();
    copy.check();
}

TH_OVER_KINDS(Rule03, all_kinds());

std::vector<Element> one_int64() { return {{Dtype::Int64, {1}}}; }

TEST(Rule03Capacity, copies_of_one_key_count_once) {
    constexpr std::size_t copies = 1000000;
    std::vector<std::int64_t> numbers(copies);
    for (std::size_t i = 0; i < copies; ++i) numbers[i] = static_cast<std::int64_t>(i);
    Tensor keys = int64_keys(std::vector<std::int64_t>(copies, 5));
    Tensor values = int64_keys(numbers);
    for (int n : {1, 2, 8, 64}) {
        Threads threads(n);
        HashMap map = int64_map(0);
        Located located = map.insert(keys, {values});
        EXPECT_EQ(map.size(), 1);
        EXPECT_EQ(map.capacity(), 1);
        EXPECT_EQ(map.get(int64_keys({5}))[0].as<std::int64_t>()[0], 0);
        std::vector<std::uint8_t> mask = mask_of(located);
        EXPECT_EQ(mask[0], 1);
        EXPECT_EQ(std::count(mask.begin(), mask.end(), 1), 1);
        std::vector<std::int32_t> indices = indices_of(located);
        EXPECT_EQ(std::count(indices.begin(), indices.end(), 0),
                  static_cast<std::ptrdiff_t>(copies));
        EXPECT_LT(map.memory_usage().total(), 100000u);
    }
}

TEST(Rule03Capacity, existing_and_duplicate_rows_never_grow_a_full_table) {
    Twin twin(1000, {Dtype::Int64, {1}}, one_int64());
    twin.insert(sequence(1000));
    for (int n : looped_thread_counts()) {
        Threads threads(n);
        twin.insert(random_ids(many_rows, 1000, 3));
        twin.insert_or_assign(random_ids(many_rows, 1000, 4));
        twin.accumulate(random_ids(many_rows, 1000, 5), {Reduce::Sum});
        twin.activate(random_ids(many_rows, 1000, 6));
        EXPECT_EQ(twin.table.capacity(), 1000);
    }
    twin.check();
}

TEST(Rule03Capacity, init_capacity_distinct_keys_fit_without_growth) {
    for (std::int64_t capacity : {1, 2, 3, 7, 8, 9, 1000, 1024, 1025, 50000}) {
        Twin twin(capacity, {Dtype::Int64, {1}}, one_int64());
        Tensor view = twin.table.value_tensor();
        twin.insert(sequence(static_cast<std::size_t>(capacity)));
        EXPECT_EQ(twin.table.capacity(), capacity);
        EXPECT_EQ(twin.table.value_tensor().data(), view.data()) << "the buffers moved";
        twin.check();
    }
}

TEST(Rule03Capacity, growth_is_to_twice_the_capacity_or_what_is_needed) {
    HashMap map = int64_map(10);
    map.insert(int64_keys({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}),
               {int64_keys(std::vector<std::int64_t>(11, 0))});
    EXPECT_EQ(map.capacity(), 20);
    std::vector<std::int64_t> many(100);
    for (std::size_t i = 0; i < many.size(); ++i) many[i] = static_cast<std::int64_t>(i);
    map.insert(int64_keys(many), {int64_keys(many)});
    EXPECT_EQ(map.capacity(), 100);
    map.validate();
}

TEST(Rule03Capacity, a_large_table_grows_by_an_eighth_and_its_index_by_itself) {
    for (Element const& key : {Element{Dtype::Int64, {1}}, Element{Dtype::Int32, {3}}}) {
        HashSet set = make_set(Capacity{200'000}, key);
        std::size_t const index = set.memory_usage().index;
        set.insert(make_keys(key, sequence(200'001)));
        EXPECT_EQ(set.capacity(), 225'000);
        EXPECT_EQ(set.memory_usage().index, index);
        set.insert(make_keys(key, sequence(280'001)));
        EXPECT_EQ(set.capacity(), 280'001);
        EXPECT_GT(set.memory_usage().index, index);
        EXPECT_LE(set.memory_usage().index, 2 * index + (2 << 20)) << "twice, in whole pages";
        set.validate();
    }
}

/// Bytes per entry of a table of 8-byte values, the most over all batches from `from` entries on.
double most_bytes_per_entry(Element const& key, std::size_t from, std::size_t to) {
    HashMap map = make_map(Capacity{0}, key, one_int64());
    constexpr std::size_t step = 20'000;
    Tensor const values = Tensor::zeros({step}, Dtype::Int64);
    double most = 0;
    for (std::size_t at = 0; at < to; at += step) {
        map.insert(make_keys(key, sequence(step, at)), {values});
        if (at + step >= from)
            most = std::max(most, static_cast<double>(map.memory_usage().total()) /
                                      static_cast<double>(map.size()));
    }
    return most;
}

TEST(Rule03Capacity, a_grown_table_holds_at_most_48_bytes_per_entry) {
    // 16 or 20 bytes are key and value.
    EXPECT_LE(most_bytes_per_entry({Dtype::Int64, {}}, 1'000'000, 1'600'000), 48);
    EXPECT_LE(most_bytes_per_entry({Dtype::Int32, {3}}, 1'000'000, 1'600'000), 44);
}

TEST(Rule03Capacity, indices_stay_when_crowded_buckets_are_spread_over_a_larger_index) {
    for (int threads : looped_thread_counts()) {
        Threads scope(threads);
        // All keys share one home bucket, so their run crosses every boundary between threads. 6000
        // keys overflow the list of deferred entries.
        for (std::size_t rows : {300u, 6000u}) {
            std::uint32_t const home = rows == 300 ? last_home : inner_home;
            Twin twin(30'000, {Dtype::Int64, {1}}, {});
            twin.insert(same_home_keys(rows, home), {});
            twin.insert(sequence(20'000), 1);
            twin.insert(int64_keys({static_cast<std::int64_t>(step::unmix(0, test_secret)),
                                    static_cast<std::int64_t>(step::unmix(1, test_secret))}),
                        {});
            twin.erase(sequence(5000, 3000));
            twin.reserve(100'000);
            twin.check();
            twin.find(same_home_keys(rows, home));
            twin.find(sequence(21'000));
            twin.clone().check();
        }
    }
}

TEST(Rule03Capacity, indices_stay_when_a_batch_makes_the_index_several_times_larger) {
    for (int threads : looped_thread_counts()) {
        Threads scope(threads);
        for (std::size_t more : {40'000u, 100'000u, 300'000u}) {
            if (more > 100'000 && !runs_in_full()) break;
            std::uint32_t const home = more == 40'000 ? first_home : last_home;
            Twin twin(30'000, {Dtype::Int64, {1}}, {});
            twin.insert(same_home_keys(300, home), {});
            twin.insert(sequence(25'000), 1);
            twin.insert(int64_keys({static_cast<std::int64_t>(step::unmix(0, test_secret)),
                                    static_cast<std::int64_t>(step::unmix(1, test_secret))}),
                        {});
            twin.erase(sequence(5000, 3000));
            // The new index may reuse memory that held an earlier one.
            twin.insert(sequence(more, 20'000), 2);
            twin.table.validate();
            twin.find(same_home_keys(300, home));
            twin.find(sequence(more + 30'000));
        }
    }
}

TEST(Rule03Capacity, old_bytes_in_memory_never_show_in_a_growing_index) {
    for (Element const& key : {Element{Dtype::Int64, {1}}, Element{Dtype::Int32, {3}}}) {
        Ids const ids = sequence(40'000);
        HashSet const set(Capacity{49'152}, key);  // its index takes at most a megabyte
        tensorhash::release_memory();
        {
            // Free a block of ones, a quarter larger than the index. The clone may reuse it.
            Tensor used = Tensor::empty({1'310'720}, Dtype::UInt8);
            std::memset(used.data(), 0xff, used.bytes());
        }
        HashSet copy = set.clone();
        copy.insert(make_keys(key, ids));
        copy.reserve(Capacity{200'000});
        copy.validate();
        EXPECT_EQ(copy.size(), 40'000);
        auto const found = mask_of(copy.find(make_keys(key, sequence(90'000))));
        EXPECT_EQ(std::count(found.begin(), found.end(), 1), 40'000);
    }
}

TEST(Rule03Capacity, reserve_never_shrinks) {
    HashMap map = int64_map(100);
    for (std::int64_t rows : {0, 5, 99, 100}) {
        map.reserve(Capacity{rows});
        EXPECT_EQ(map.capacity(), 100);
    }
    map.reserve(Capacity{101});
    EXPECT_EQ(map.capacity(), 101);
    map.clear();
    EXPECT_EQ(map.capacity(), 101);
    EXPECT_EQ(map.size(), 0);
    map.validate();
}

TEST(Rule03Capacity, shrink_to_fit_gives_memory_back_and_moves_no_entry) {
    for (KeyKind const& kind : sample_kinds()) {
        if (kind.width() < 8) continue;
        SCOPED_TRACE(kind.name);
        Twin twin(0, kind.element, one_int64());
        twin.shrink_to_fit();
        twin.check();
        twin.insert(sequence(70'000));
        twin.erase(sequence(5'000, 65'000));  // the last entries
        twin.erase(sequence(3'000, 1'000));
        std::size_t const before = twin.table.memory_usage().total();
        Tensor const live = twin.table.active_buf_indices();
        twin.shrink_to_fit();
        EXPECT_EQ(twin.table.capacity(), to_vector<std::int32_t>(live).back() + 1);
        EXPECT_LT(twin.table.memory_usage().total(), before);
        twin.check();
        twin.find(sequence(70'000));
        twin.insert(sequence(10'000, 100'000), 2);  // freed indices first, then fresh ones
        twin.check();
        twin.erase(sequence(80'000));
        twin.erase(sequence(10'000, 100'000));
        twin.shrink_to_fit();
        EXPECT_EQ(twin.table.capacity(), 0);
        EXPECT_LT(twin.table.memory_usage().total(), 2000u);
        twin.insert(sequence(10));
        twin.check();
    }
}

TEST(Rule03Capacity, shrink_to_fit_of_a_full_table_changes_nothing) {
    Twin twin(1000, {Dtype::Int64, {1}}, one_int64());
    twin.insert(sequence(1000));
    void const* const data = twin.table.key_tensor().data();
    twin.shrink_to_fit();
    EXPECT_EQ(twin.table.capacity(), 1000);
    EXPECT_EQ(twin.table.key_tensor().data(), data);
    twin.check();
}

TEST(Rule03Views, a_view_keeps_its_memory_when_the_table_shrinks) {
    HashMap map = int64_map(100'000);
    map.insert(int64_keys({10, 20, 30}), {int64_keys({1, 2, 3})});
    Tensor view = map.value_tensor();
    map.shrink_to_fit();
    EXPECT_EQ(map.capacity(), 3);
    EXPECT_EQ(view.shape()[0], 100'000);
    write_element<std::int64_t>(view, 99'999, 7);
    write_element<std::int64_t>(view, 0, 7);
    EXPECT_EQ(map.get(int64_keys({10, 30}))[0].as<std::int64_t>()[0], 1);
    map.validate();
}

TEST(Rule03Views, unused_rows_read_as_zeros_after_a_table_shrinks_and_grows) {
    HashMap map = int64_map(0);
    std::vector<std::int64_t> numbers(200'000);
    std::iota(numbers.begin(), numbers.end(), 1);
    map.insert(int64_keys(numbers), {int64_keys(numbers)});
    map.erase(int64_keys({numbers.begin() + 99'999, numbers.end()}));
    map.shrink_to_fit();
    ASSERT_EQ(map.capacity(), 99'999);
    map.reserve(Capacity{150'000});
    for (Tensor const& view : {map.key_tensor(), map.value_tensor()}) {
        auto const rows = to_vector<std::int64_t>(view);
        EXPECT_EQ(std::count(rows.begin() + 99'999, rows.end(), 0), 150'000 - 99'999);
    }
}

TEST(Rule03Capacity, churn_at_constant_size_grows_neither_buffers_nor_index) {
    for (KeyKind const& kind : sample_kinds()) {
        if (kind.width() < 8) continue;
        Twin twin(2000, kind.element, one_int64());
        twin.insert(sequence(2000));
        std::size_t before = twin.table.memory_usage().total();
        for (std::uint64_t round = 0; round < 60; ++round) {
            twin.erase(sequence(1000, 1000 * round));
            twin.insert(sequence(1000, 2000 + 1000 * round), round);
        }
        EXPECT_EQ(twin.table.capacity(), 2000);
        EXPECT_LE(twin.table.memory_usage().total(), before + 16 * 2000) << kind.name;
        twin.check();
    }
}

TEST(Rule03Capacity, memory_usage_counts_all_buffers) {
    HashMap map =
        make_map(Capacity{1000}, {Dtype::Int32, {3}}, {{Dtype::Float64, {4}}, {Dtype::Int8, {}}});
    tensorhash::MemoryUsage usage = map.memory_usage();
    EXPECT_GE(usage.keys, 12000u);
    EXPECT_GE(usage.values, 33000u);
    EXPECT_LT(usage.values, 2 * 33000u);
    EXPECT_GE(usage.index, 8000u);
    EXPECT_EQ(usage.total(), usage.keys + usage.values + usage.index + usage.bookkeeping);
}

TEST(Rule03Views, a_view_shares_the_tables_memory_until_growth) {
    HashMap map = int64_map(4);
    map.insert(int64_keys({10, 20}), {int64_keys({1, 2})});
    Tensor view = map.value_tensor();
    write_element<std::int64_t>(view, 1, 77);
    EXPECT_EQ(map.get(int64_keys({20}))[0].as<std::int64_t>()[0], 77);
    map.insert_or_assign(int64_keys({10}), {int64_keys({55})});
    EXPECT_EQ(to_vector<std::int64_t>(view)[0], 55);
}

TEST(Rule03Views, a_view_taken_before_growth_stays_safe_to_read_and_write) {
    Tensor values, keys;
    {
        HashMap map = int64_map(4);
        map.insert(int64_keys({10, 20, 30, 40}), {int64_keys({1, 2, 3, 4})});
        values = map.value_tensor();
        keys = map.key_tensor();
        map.insert(int64_keys({50}), {int64_keys({5})});
        EXPECT_EQ(to_vector<std::int64_t>(values), (std::vector<std::int64_t>{1, 2, 3, 4}));
        write_element<std::int64_t>(values, 0, 100);
        EXPECT_EQ(map.get(int64_keys({10, 50}))[0].as<std::int64_t>()[0], 1);
        map.compact();
        map.clear();
    }
    EXPECT_EQ(to_vector<std::int64_t>(values), (std::vector<std::int64_t>{100, 2, 3, 4}));
    EXPECT_EQ(to_vector<std::int64_t>(keys), (std::vector<std::int64_t>{10, 20, 30, 40}));
}

/// Keys 0, 1, 2 … with equal values; large enough that buffers are mapped and grow in place.
HashMap large_map(std::int64_t capacity, std::int64_t rows) {
    HashMap map = int64_map(capacity);
    std::vector<std::int64_t> numbers(static_cast<std::size_t>(rows));
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::int64_t>(i);
    map.insert(int64_keys(numbers), {int64_keys(numbers)});
    return map;
}

/// Every key is at its index, every value is unchanged, and unused rows read as zeros.
void expect_numbers(HashMap const& map, std::int64_t rows) {
    map.validate();
    std::vector<std::int64_t> const keys = to_vector<std::int64_t>(map.key_tensor());
    std::vector<std::int64_t> const values = to_vector<std::int64_t>(map.value_tensor());
    for (std::size_t i = 0; i < keys.size(); ++i) {
        std::int64_t const number =
            static_cast<std::int64_t>(i) < rows ? static_cast<std::int64_t>(i) : 0;
        ASSERT_EQ(keys[i], number) << i;
        ASSERT_EQ(values[i], number) << i;
    }
}

TEST(Rule03Views, large_tables_grow_and_keep_everything) {
    constexpr std::int64_t rows = 300000;
    for (int n : looped_thread_counts()) {
        Threads threads(n);
        tensorhash::release_memory();
        HashMap map = large_map(rows, rows);
        for (std::int64_t capacity : {2 * rows, 2 * rows + 1, 5 * rows}) {
            map.reserve(Capacity{capacity});
            EXPECT_EQ(map.capacity(), capacity);
            expect_numbers(map, rows);
        }
        map.insert(int64_keys({-1}), {int64_keys({-1})});
        EXPECT_EQ(indices_of(map.find(int64_keys({-1}))).at(0), rows);
    }
}

TEST(Rule03Views, rows_that_were_cleared_read_as_zeros_after_growth) {
    constexpr std::int64_t rows = 300000;
    tensorhash::release_memory();
    HashMap map = large_map(rows, rows);
    map.clear();
    map.insert(int64_keys({0, 1}), {int64_keys({0, 1})});
    map.reserve(Capacity{2 * rows});
    expect_numbers(map, 2);
}

TEST(Rule03Views, a_view_of_a_large_table_stays_where_it_is_when_the_table_grows) {
    constexpr std::int64_t rows = 300000;
    tensorhash::release_memory();
    HashMap map = large_map(rows, rows);
    Tensor values = map.value_tensor();
    map.reserve(Capacity{2 * rows});
    write_element<std::int64_t>(values, 5, 77);
    expect_numbers(map, rows);
    std::vector<std::int64_t> const shown = to_vector<std::int64_t>(values);
    EXPECT_EQ(shown.size(), static_cast<std::size_t>(rows));
    EXPECT_EQ(shown[5], 77);
    EXPECT_EQ(shown.back(), rows - 1);
}

TEST(Rule03Views, views_outlive_the_table_and_survive_compact) {
    HashMap map = int64_map(4);
    map.insert(int64_keys({1, 2, 3, 4}), {int64_keys({1, 2, 3, 4})});
    map.erase(int64_keys({1, 3}));
    Tensor view = map.value_tensor();
    map.compact();
    EXPECT_EQ(to_vector<std::int64_t>(view)[3], 4);
    write_element<std::int64_t>(view, 3, 9);
    EXPECT_EQ(to_vector<std::int64_t>(map.items().values[0]), (std::vector<std::int64_t>{2, 4}));
    EXPECT_EQ(to_vector<std::int64_t>(map.keys()), (std::vector<std::int64_t>{2, 4}));
}

TEST(Rule03Views, buffers_are_aligned_and_keys_read_only) {
    for (std::int64_t capacity : {1, 3, 1000, 100000}) {
        HashMap map = make_map(Capacity{capacity}, {Dtype::Int8, {3}},
                               {{Dtype::Int8, {}}, {Dtype::Float16, {5}}});
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(map.key_tensor().data()) % 64, 0u);
        for (Tensor const& view : map.value_tensors()) {
            EXPECT_EQ(reinterpret_cast<std::uintptr_t>(view.data()) % 64, 0u);
            EXPECT_FALSE(view.read_only());
        }
        EXPECT_TRUE(map.key_tensor().read_only());
        EXPECT_EQ(map.key_tensor().shape(), (Shape{capacity, 3}));
    }
}

TEST(Rule03Views, moving_a_table_keeps_its_memory) {
    HashMap map = int64_map(4);
    map.insert(int64_keys({1, 2}), {int64_keys({5, 6})});
    void const* data = map.value_tensor().data();
    HashMap moved = std::move(map);
    EXPECT_EQ(static_cast<Tensor const&>(moved.value_tensor()).data(), data);
    HashMap assigned = int64_map(1);
    assigned = std::move(moved);
    EXPECT_EQ(assigned.size(), 2);
    assigned.validate();
}

}  // namespace
}  // namespace th_test
