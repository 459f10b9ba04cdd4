// Contract rule 9: activate of a new key shows zeros, also in an entry that an erased key used.
#include "support/fixtures.hpp"
#include "support/views.hpp"

namespace th_test {
namespace {

class Rule09 : public OverKinds {};

bool all_zero(Tensor const& tensor) {
    std::string bytes = bytes_of(tensor);
    return bytes.find_first_not_of('\0') == std::string::npos;
}

TEST_P(Rule09, activate_after_erase_shows_zeros) {
    Twin twin = this->twin(100);
    twin.insert(sequence(100), 1);
    twin.erase(sequence(60));
    twin.activate(sequence(60, 5000));
    // Short and bool keys have few distinct values, so some of these keys were not erased.
    if (key().bytes() >= 4 && key().dtype != Dtype::Bool) {
        for (Tensor const& column : twin.table.get(twin.keys(sequence(60, 5000))))
            EXPECT_TRUE(all_zero(column));
    }
    twin.check();
}

TEST_P(Rule09, activate_after_clear_compact_and_growth_shows_zeros) {
    Twin twin = this->twin(10);
    twin.insert(sequence(200), 1);
    twin.clear();
    twin.activate(sequence(200, 1000));
    twin.check();
    twin.insert_or_assign(sequence(200, 1000), 2);
    twin.erase(random_ids(150, 200, 3));
    twin.compact();
    twin.activate(sequence(few_rows, 3000));
    twin.check();
}

TEST_P(Rule09, rows_beyond_the_entries_read_as_zeros) {
    Twin twin = this->twin(2 * few_rows);
    twin.insert(sequence(20), 1);
    twin.insert(random_ids(few_rows, 30, 4), 2);  // most of these rows add no key
    twin.activate(sequence(20));
    std::string const keys = bytes_of(twin.table.key_tensor());
    auto const held = static_cast<std::size_t>(twin.table.size()) * key().bytes();
    EXPECT_EQ(keys.find_first_not_of('\0', held), std::string::npos);
    twin.check();
}

TEST_P(Rule09, accumulate_on_a_recycled_entry_starts_from_its_first_row) {
    Twin twin = this->twin(0);
    twin.insert(sequence(100), 1);
    twin.erase(sequence(100));
    // First and Last copy rows, so any bits may be compared.
    twin.accumulate(random_ids(300, 150, 4), {Reduce::First}, 5);
    twin.accumulate(random_ids(300, 150, 6), {Reduce::Last}, 7);
    twin.check();
}

TH_OVER_KINDS(Rule09, all_kinds());

TEST(Rule09Large, activate_into_a_large_recycled_table_shows_zeros) {
    for (int n : looped_thread_counts()) {
        Threads threads(n);
        Twin twin(many_rows, {Dtype::Int64, {1}}, {{Dtype::Float32, {7}}, {Dtype::UInt8, {}}});
        twin.insert(sequence(many_rows), 1);
        twin.erase(sequence(many_rows));
        twin.activate(sequence(many_rows, many_rows));
        EXPECT_TRUE(all_zero(twin.table.value_tensor(0)));
        EXPECT_TRUE(all_zero(twin.table.value_tensor(1)));
        twin.check();
    }
}

TEST(Rule09Large, existing_keys_keep_their_values_when_activated) {
    HashMap map = int64_map();
    map.insert(int64_keys({1, 2}), {int64_keys({10, 20})});
    EXPECT_EQ(mask_of(map.activate(int64_keys({2, 3, 3}))), (std::vector<std::uint8_t>{0, 1, 0}));
    EXPECT_EQ(to_vector<std::int64_t>(map.get(int64_keys({1, 2, 3}))[0]),
              (std::vector<std::int64_t>{10, 20, 0}));
}

TEST(Rule09Large, a_new_key_shows_zeros_even_if_unused_rows_were_written) {
    HashMap map = int64_map(8);
    map.activate(int64_keys({1}));
    Tensor view = map.value_tensor();
    for (std::size_t i = 0; i < 8; ++i) write_element<std::int64_t>(view, i, 7);
    map.activate(int64_keys({2, 3}));
    EXPECT_EQ(to_vector<std::int64_t>(map.get(int64_keys({1, 2, 3}))[0]),
              (std::vector<std::int64_t>{7, 0, 0}));
}

TEST(Rule09Large, buffers_of_a_new_table_hold_zeros) {
    for (std::int64_t rows : {100, 300000}) {
        HashMap map = make_map(Capacity{rows}, {Dtype::Int64, {1}}, {{Dtype::Int64, {2}}});
        EXPECT_TRUE(all_zero(map.value_tensor()));
        EXPECT_TRUE(all_zero(map.key_tensor()));
    }
}

}  // namespace
}  // namespace th_test
