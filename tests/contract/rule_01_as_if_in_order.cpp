// Contract rule 1: a batch gives the same result as its rows one by one, on any number of threads.
// Small batches cover every key width and type; large ones cover the sample kinds.
#include <algorithm>

#include "support/fixtures.hpp"

namespace th_test {
namespace {

class Rule01 : public OverKinds {};
class Rule01Large : public OverKinds {};

TEST_P(Rule01, of_equal_keys_in_a_batch_the_first_row_wins) {
    Twin twin = this->twin(few_rows);
    twin.insert(random_ids(few_rows, few_rows / 3, 11));
    twin.check();
}

TEST_P(Rule01, new_existing_and_duplicate_rows_mix_in_one_batch) {
    Twin twin = this->twin(few_rows);
    twin.insert(sequence(200), 1);
    Ids mixed = random_ids(few_rows, 400, 12);
    twin.insert(mixed, 2);
    twin.find(random_ids(few_rows, 800, 13));
    twin.check();
}

TEST_P(Rule01, freed_indices_are_a_stack_that_erase_pushes_in_row_order) {
    Twin twin = this->twin(few_rows);
    twin.insert(sequence(300), 1);
    twin.erase(random_ids(200, 400, 14));
    twin.insert(sequence(few_rows, 1000), 2);
    twin.find(sequence(300));
    twin.check();
}

TEST_P(Rule01, churn_follows_the_oracle_round_after_round) {
    Twin twin = this->twin(0);
    for (std::uint64_t round = 0; round < 8; ++round) {
        twin.insert(random_ids(160, 300, 100 + round), round);
        twin.erase(random_ids(130, 300, 200 + round));
        twin.activate(random_ids(40, 300, 300 + round));
        twin.find(random_ids(160, 300, 400 + round));
        twin.check();
    }
}

TEST_P(Rule01, insert_or_assign_lets_the_last_row_win) {
    Twin twin = this->twin(0);
    twin.insert(sequence(100), 1);
    twin.insert_or_assign(random_ids(few_rows, 250, 15), 2);
    twin.check();
}

TEST_P(Rule01, one_row_at_a_time_ends_in_the_same_bytes_as_one_batch) {
    Twin whole = this->twin(256);
    Twin single = this->twin(256);
    Ids ids = random_ids(256, 120, 16);
    Tensor keys = whole.keys(ids);
    std::vector<Tensor> values = whole.columns(ids.size(), 5);
    whole.insert(keys, values);
    Rows key_rows = whole.key_rows(keys);
    std::vector<Rows> value_rows = whole.value_rows(values);
    for (std::size_t row = 0; row < ids.size(); ++row) {
        Tensor one = Tensor::empty(rows_shape(1, key()), key().dtype);
        std::memcpy(one.data(), key_rows[row].data(), key_rows.width);
        std::vector<Tensor> one_value;
        for (std::size_t c = 0; c < values.size(); ++c) {
            one_value.push_back(Tensor::empty(rows_shape(1, columns()[c]), columns()[c].dtype));
            std::memcpy(one_value[c].data(), value_rows[c][row].data(), value_rows[c].width);
        }
        single.table.insert(one, one_value);
    }
    EXPECT_TRUE(same_bytes(whole.table.to_bytes(), single.table.to_bytes()));
}

TEST_P(Rule01Large, batches_that_fit_the_free_buffer_rows_follow_the_oracle) {
    Twin twin = this->twin(3 * many_rows);
    twin.insert(sequence(many_rows / 2), 1);
    twin.erase(random_ids(many_rows / 4, many_rows, 25));
    // New, existing and repeated keys; some new ones reuse erased entries.
    twin.insert(random_ids(many_rows, many_rows, 26), 2);
    twin.activate(random_ids(many_rows, many_rows, 27));
    twin.find(random_ids(many_rows, 2 * many_rows, 28));
    twin.check();
}

TEST_P(Rule01Large, insert_of_a_large_batch_with_few_duplicates) {
    Twin twin = this->twin(0);
    twin.insert(random_ids(many_rows, 4 * many_rows, 21));
    twin.find(random_ids(many_rows, 8 * many_rows, 22));
    twin.check();
}

TEST_P(Rule01Large, insert_of_a_large_batch_with_many_duplicates) {
    Twin twin = this->twin(16);
    twin.insert(random_ids(many_rows, 50, 23));
    twin.insert(random_ids(many_rows, 5000, 24));
    twin.check();
}

TEST_P(Rule01Large, distinct_new_keys_get_indices_in_row_order) {
    Twin twin = this->twin(many_rows);
    Located located = twin.insert(sequence(many_rows));
    twin.erase(sequence(many_rows / 2, 1000));
    twin.insert(sequence(many_rows, 3 * many_rows), 2);
    twin.check();
}

TEST_P(Rule01Large, erase_of_a_large_batch_pushes_in_row_order) {
    Twin twin = this->twin(0);
    twin.insert(sequence(many_rows));
    for (std::uint64_t round = 0; round < 3; ++round) {
        twin.erase(random_ids(many_rows, many_rows, 31 + round));
        twin.insert(random_ids(many_rows, 2 * many_rows, 41 + round), round);
    }
    twin.check();
}

TEST_P(Rule01Large, insert_or_assign_of_a_large_batch) {
    Twin twin = this->twin(0);
    twin.insert(random_ids(many_rows, many_rows, 51), 1);
    twin.insert_or_assign(random_ids(many_rows, many_rows, 52), 2);
    twin.insert_or_assign(random_ids(many_rows, 30, 53), 3);
    twin.check();
}

TH_OVER_KINDS(Rule01, all_kinds());
TH_OVER_KINDS(Rule01Large, sample_kinds());

/// Runs the same program on `n` threads; returns the bytes of the saved table.
std::string bytes_after_churn(int n, KeyKind const& kind) {
    Threads threads(n);
    HashMap table = make_map(Capacity{10}, kind.element, {{Dtype::Float64, {2}}});
    for (std::uint64_t round = 0; round < 3; ++round) {
        Ids ids = random_ids(many_rows, many_rows / 2, 60 + round);
        table.insert(make_keys(kind.element, ids),
                     make_columns(table.value_elements(), ids.size(), round));
        table.erase(make_keys(kind.element, random_ids(many_rows, many_rows, 70 + round)));
    }
    return bytes_of(table.to_bytes());
}

TEST(Rule01Threads, tables_are_bit_identical_on_any_number_of_threads_and_run_after_run) {
    for (KeyKind const& kind : sample_kinds()) {
        std::string one = bytes_after_churn(1, kind);
        EXPECT_TRUE(same_bytes(bytes_after_churn(8, kind), one)) << kind.name << " on 8";
        if (!runs_in_full()) continue;
        for (int n : {2, 3, 8, 64})
            EXPECT_TRUE(same_bytes(bytes_after_churn(n, kind), one)) << kind.name << " on " << n;
    }
}

TEST(Rule01Threads, unique_gives_first_occurrences_in_row_order) {
    for (int n : looped_thread_counts())
        for (KeyKind const& kind : typed_kinds()) {
            Threads threads(n);
            Ids ids = random_ids(many_rows / 2, 3000, 81);
            Tensor rows = make_keys(kind.element, ids);
            Oracle oracle(0, kind.element, {});
            OracleLocated want = oracle.insert(rows_of(rows, kind.element), {});
            std::vector<std::int64_t> index, inverse,
                counts(static_cast<std::size_t>(oracle.size()));
            for (std::size_t row = 0; row < ids.size(); ++row) {
                if (want.mask[row]) index.push_back(static_cast<std::int64_t>(row));
                inverse.push_back(want.indices[row]);
                ++counts[static_cast<std::size_t>(want.indices[row])];
            }
            tensorhash::Unique got = tensorhash::unique(rows);
            EXPECT_TRUE(same_bytes(got.rows, oracle.keys())) << kind.name;
            EXPECT_EQ(to_vector<std::int64_t>(got.index), index) << kind.name;
            EXPECT_EQ(to_vector<std::int64_t>(got.inverse), inverse) << kind.name;
            EXPECT_EQ(to_vector<std::int64_t>(got.counts), counts) << kind.name;
            EXPECT_EQ(got.rows.shape(),
                      rows_shape(static_cast<std::size_t>(oracle.size()), kind.element));
        }
}

TEST(Rule01Threads, unique_returns_only_the_requested_arrays) {
    Tensor rows = int64_keys({5, 6, 5, 7, 7, 7});
    for (int asked = 0; asked < 8; ++asked) {
        tensorhash::Unique got =
            tensorhash::unique(rows, {(asked & 1) != 0, (asked & 2) != 0, (asked & 4) != 0});
        using Numbers = std::vector<std::int64_t>;
        EXPECT_EQ(to_vector<std::int64_t>(got.rows), (Numbers{5, 6, 7}));
        EXPECT_EQ(to_vector<std::int64_t>(got.index),
                  (asked & 1) != 0 ? Numbers({0, 1, 3}) : Numbers());
        EXPECT_EQ(to_vector<std::int64_t>(got.inverse),
                  (asked & 2) != 0 ? Numbers({0, 1, 0, 2, 2, 2}) : Numbers());
        EXPECT_EQ(to_vector<std::int64_t>(got.counts),
                  (asked & 4) != 0 ? Numbers({2, 1, 3}) : Numbers());
    }
}

TEST(Rule01Threads, unique_is_right_for_rows_that_mislead_its_sample) {
    // A sample reads every 12th row. Those rows hold 50 keys; all other rows are distinct.
    constexpr std::size_t rows = std::size_t{12} << 13;
    std::vector<std::int64_t> keys(rows);
    for (std::size_t i = 0; i < rows; ++i)
        keys[i] = static_cast<std::int64_t>(i % 12 == 0 ? i / 12 % 50 : i + 1000);
    for (int threads : looped_thread_counts()) {
        Threads scope(threads);
        tensorhash::Unique got = tensorhash::unique(Tensor::from(keys));
        std::vector<std::int64_t> const index = to_vector<std::int64_t>(got.index);
        std::vector<std::int64_t> const inverse = to_vector<std::int64_t>(got.inverse);
        ASSERT_EQ(index.size(), 50 + (std::size_t{11} << 13));
        ASSERT_TRUE(std::is_sorted(index.begin(), index.end()));
        for (std::size_t i = 0; i < rows; ++i) {
            auto const first =
                static_cast<std::size_t>(index[static_cast<std::size_t>(inverse[i])]);
            ASSERT_EQ(keys[first], keys[i]) << "row " << i;
            ASSERT_LE(first, i);
        }
    }
}

TEST(Rule01Threads, a_key_in_the_table_and_twice_in_the_batch) {
    HashMap first = int64_map();
    first.insert(int64_keys({7}), {int64_keys({1})});
    EXPECT_EQ(indices_of(first.insert(int64_keys({7, 8, 7, 8}), {int64_keys({2, 3, 4, 5})})),
              (std::vector<std::int32_t>{0, 1, 0, 1}));
    EXPECT_EQ(to_vector<std::int64_t>(first.get(int64_keys({7, 8}))[0]),
              (std::vector<std::int64_t>{1, 3}));
    HashMap last = int64_map();
    last.insert(int64_keys({7}), {int64_keys({1})});
    Located located = last.insert_or_assign(int64_keys({7, 8, 7, 8}), {int64_keys({2, 3, 4, 5})});
    EXPECT_EQ(mask_of(located), (std::vector<std::uint8_t>{0, 1, 0, 0}));
    EXPECT_EQ(to_vector<std::int64_t>(last.get(int64_keys({7, 8}))[0]),
              (std::vector<std::int64_t>{4, 5}));
}

TEST(Rule01Threads, from_items_takes_the_first_of_equal_keys) {
    HashMap map = HashMap::from_items(int64_keys({5, 6, 5}), {int64_keys({1, 2, 3})});
    EXPECT_EQ(map.size(), 2);
    EXPECT_EQ(to_vector<std::int64_t>(map.keys()), (std::vector<std::int64_t>{5, 6}));
    EXPECT_EQ(to_vector<std::int64_t>(map.items().values[0]), (std::vector<std::int64_t>{1, 2}));
    EXPECT_EQ(map.key_element(), (Element{Dtype::Int64, {1}}));
}

}  // namespace
}  // namespace th_test
