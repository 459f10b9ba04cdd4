// Contract rule 2: the mask says what happened to a row, the index says where its key lives. Both
// are right for every row. Listings ascend by buffer index.
#include <algorithm>

#include "support/fixtures.hpp"

namespace th_test {
namespace {

class Rule02 : public OverKinds {};

TEST_P(Rule02, the_index_of_every_row_leads_to_its_key) {
    Twin twin = this->twin(0);
    twin.insert(random_ids(300, 200, 1));
    Tensor keys = twin.keys(random_ids(few_rows, 500, 2));
    Located located = twin.table.insert(keys, twin.columns(few_rows, 3));
    Rows rows = twin.key_rows(keys);
    Rows stored = twin.key_rows(twin.table.key_tensor());
    std::vector<std::int32_t> indices = indices_of(located);
    for (std::size_t row = 0; row < rows.count; ++row) {
        ASSERT_GE(indices[row], 0);
        ASSERT_EQ(canonical(stored[static_cast<std::size_t>(indices[row])], key().dtype),
                  canonical(rows[row], key().dtype));
    }
}

TEST_P(Rule02, find_gives_minus_one_and_false_for_absent_keys) {
    Twin twin = this->twin(0);
    twin.find(sequence(50));
    twin.insert(sequence(200));
    twin.erase(sequence(60, 20));
    twin.find(random_ids(few_rows, 400, 4));
}

TEST_P(Rule02, get_gives_the_values_or_the_default) {
    Twin twin = this->twin(0);
    twin.insert(sequence(200), 3);
    Ids ids = random_ids(few_rows, 400, 5);
    twin.get(ids);
    std::vector<Tensor> row_each = twin.columns(ids.size(), 6);
    twin.get(ids, row_each);
    std::vector<Tensor> one_row;
    for (Element const& column : columns())
        one_row.push_back(make_values(column, 1, 7).reshape(column.shape));
    twin.get(ids, one_row);
}

TEST_P(Rule02, listings_ascend_by_buffer_index) {
    Twin twin = this->twin(0);
    twin.insert(random_ids(400, 300, 8));
    twin.erase(random_ids(200, 300, 9));
    twin.insert(sequence(60, 5000), 10);
    std::vector<std::int32_t> active = to_vector<std::int32_t>(twin.table.active_buf_indices());
    EXPECT_TRUE(std::is_sorted(active.begin(), active.end()));
    twin.check();
}

TEST_P(Rule02, results_have_the_documented_dtypes_and_shapes) {
    Twin twin = this->twin(10);
    Tensor keys = twin.keys(sequence(10));
    Located inserted = twin.table.insert(keys, twin.columns(10, 1));
    EXPECT_EQ(inserted.indices.dtype(), Dtype::Int32);
    EXPECT_EQ(inserted.indices.shape(), (Shape{10}));
    EXPECT_EQ(inserted.mask.dtype(), Dtype::Bool);
    EXPECT_EQ(inserted.mask.shape(), (Shape{10}));
    auto size = static_cast<std::size_t>(twin.table.size());
    EXPECT_EQ(twin.table.keys().shape(), rows_shape(size, key()));
    EXPECT_EQ(twin.table.keys().dtype(), key().dtype);
    EXPECT_EQ(twin.table.key_tensor().shape(), rows_shape(10, key()));
    EXPECT_EQ(twin.table.value_tensor(1).shape(), rows_shape(10, columns()[1]));
    EXPECT_EQ(twin.table.value_tensors().size(), 2u);
    EXPECT_EQ(twin.table.get(keys)[1].shape(), rows_shape(10, columns()[1]));
    EXPECT_EQ(twin.table.contains(keys).shape(), (Shape{10}));
    EXPECT_EQ(twin.table.erase(keys).dtype(), Dtype::Bool);
}

TH_OVER_KINDS(Rule02, all_kinds());

class Rule02Large : public OverKinds {};

TEST_P(Rule02Large, find_get_and_listings_of_a_large_table) {
    Twin twin = this->twin(0);
    twin.insert(sequence(many_rows));
    twin.erase(random_ids(many_rows / 4, many_rows, 11));
    twin.find(random_ids(2 * many_rows, 2 * many_rows, 12));
    twin.get(random_ids(many_rows, 2 * many_rows, 13), twin.columns(many_rows, 14));
    twin.check();
}

TH_OVER_KINDS(Rule02Large, sample_kinds());

TEST(Rule02Erase, erase_is_true_once_per_key) {
    HashMap map = int64_map(4);
    map.insert(int64_keys({1, 2, 3, 4}), {int64_keys({1, 2, 3, 4})});
    EXPECT_EQ(mask_of(map.erase(int64_keys({3, 3, 999}))), (std::vector<std::uint8_t>{1, 0, 0}));
    EXPECT_EQ(map.size(), 3);
    EXPECT_EQ(indices_of(map.insert(int64_keys({50}), {int64_keys({5})})),
              (std::vector<std::int32_t>{2}));
    EXPECT_EQ(map.capacity(), 4);
    map.validate();
}

TEST(Rule02Erase, a_table_with_everything_erased_answers_and_fills_again) {
    Twin twin(0, {Dtype::Int64, {1}}, {});
    for (int round = 0; round < 3; ++round) {
        twin.insert(sequence(5000));
        twin.erase(sequence(5000));
        twin.find(sequence(6000));
        twin.erase(sequence(6000));
        twin.check();
    }
}

TEST(Rule02Erase, erase_of_one_key_in_a_large_batch_is_true_at_its_first_row) {
    for (int n : looped_thread_counts()) {
        Threads threads(n);
        Twin twin(0, {Dtype::Int64, {1}}, {});
        twin.insert(sequence(100));
        twin.erase(Ids(many_rows, 7));
        twin.check();
    }
}

TEST(Rule02Sets, a_set_is_a_map_without_columns) {
    HashSet set = make_set(Capacity{2}, {Dtype::Int32, {3}});
    Tensor keys = make_keys({Dtype::Int32, {3}}, {1, 2, 1, 3});
    EXPECT_EQ(indices_of(set.insert(keys)), (std::vector<std::int32_t>{0, 1, 0, 2}));
    EXPECT_EQ(set.size(), 3);
    EXPECT_EQ(mask_of(set.contains(keys)), (std::vector<std::uint8_t>{1, 1, 1, 1}));
    EXPECT_EQ(mask_of(set.erase(keys)), (std::vector<std::uint8_t>{1, 1, 0, 1}));
    EXPECT_THROW(HashSet{int64_map()}, tensorhash::ValueError);
    set.validate();
}

TEST(Rule02Sets, a_map_without_columns_has_no_values) {
    HashMap map = make_map(Capacity{2}, {Dtype::Int64, {}}, {});
    map.activate(Tensor::from(std::vector<std::int64_t>{1, 2, 3}));
    EXPECT_TRUE(map.value_tensors().empty());
    EXPECT_TRUE(map.get(Tensor::from(std::vector<std::int64_t>{1})).empty());
    EXPECT_TRUE(map.items().values.empty());
    EXPECT_THROW(map.value_tensor(0), tensorhash::IndexError);
}

}  // namespace
}  // namespace th_test
