// Contract rule 6: zero rows in, zero rows out, right dtype and shape, for every operation;
// an empty table saves, loads, clones.
#include "support/fixtures.hpp"

namespace th_test {
namespace {

class Rule06 : public OverKinds {};

/// Calls every operation with no rows; the table must not change.
void try_every_operation(Twin& twin) {
    std::string before = bytes_of(twin.table.to_bytes());
    Ids none;
    for (Located const& located :
         {twin.insert(none), twin.activate(none), twin.insert_or_assign(none),
          twin.accumulate(none, {Reduce::Sum}), twin.find(none)}) {
        EXPECT_EQ(located.indices.shape(), (Shape{0}));
        EXPECT_EQ(located.indices.dtype(), Dtype::Int32);
        EXPECT_EQ(located.mask.shape(), (Shape{0}));
        EXPECT_EQ(located.mask.dtype(), Dtype::Bool);
    }
    EXPECT_EQ(twin.erase(none).shape(), (Shape{0}));
    EXPECT_EQ(twin.table.contains(twin.keys(none)).shape(), (Shape{0}));
    std::vector<Tensor> got = twin.get(none);
    for (std::size_t c = 0; c < got.size(); ++c) {
        EXPECT_EQ(got[c].shape(), rows_shape(0, twin.table.value_elements()[c]));
        EXPECT_EQ(got[c].dtype(), twin.table.value_elements()[c].dtype);
    }
    EXPECT_TRUE(same_bytes(twin.table.to_bytes(), before));
    twin.check();
}

TEST_P(Rule06, zero_rows_go_into_every_operation_of_an_empty_table) {
    for (std::int64_t capacity : {0, 1, 100}) {
        Twin twin = this->twin(capacity);
        try_every_operation(twin);
    }
}

TEST_P(Rule06, zero_rows_go_into_every_operation_of_a_full_table) {
    Twin twin = this->twin(3);
    twin.insert(sequence(3));
    try_every_operation(twin);
}

TEST_P(Rule06, an_empty_table_lists_zero_rows_of_the_right_shape) {
    Twin twin = this->twin(0);
    EXPECT_EQ(twin.table.keys().shape(), rows_shape(0, key()));
    EXPECT_EQ(twin.table.keys().dtype(), key().dtype);
    EXPECT_EQ(twin.table.key_tensor().shape(), rows_shape(0, key()));
    EXPECT_EQ(twin.table.value_tensor(1).shape(), rows_shape(0, columns()[1]));
    EXPECT_EQ(twin.table.active_buf_indices().shape(), (Shape{0}));
    EXPECT_EQ(twin.table.active_buf_indices().dtype(), Dtype::Int32);
    EXPECT_EQ(twin.table.items().values[0].shape(), rows_shape(0, columns()[0]));
    EXPECT_EQ(twin.table.compact().shape(), (Shape{0}));
    twin.find(sequence(20));
    twin.erase(sequence(20));
    twin.get(sequence(20));
    twin.reserve(0);
    twin.clear();
    twin.check();
}

TEST_P(Rule06, an_empty_table_clones_saves_and_loads) {
    for (std::int64_t capacity : {0, 17}) {
        Twin twin = this->twin(capacity);
        Twin copy = twin.clone();
        copy.insert(sequence(20));
        copy.check();
        Twin loaded(HashMap::from_bytes(twin.table.to_bytes()), twin.oracle);
        EXPECT_EQ(loaded.table.key_element(), key());
        EXPECT_EQ(loaded.table.value_elements(), columns());
        loaded.check();
        loaded.insert(sequence(40));
        loaded.check();
    }
}

TEST_P(Rule06, from_items_and_unique_of_no_rows) {
    Tensor none = make_keys(key(), {});
    HashMap map = HashMap::from_items(none, {make_values({Dtype::Float32, {3}}, 0, 1)});
    EXPECT_EQ(map.size(), 0);
    EXPECT_EQ(map.key_element(), key());
    map.validate();
    tensorhash::Unique distinct = tensorhash::unique(none);
    EXPECT_EQ(distinct.rows.shape(), rows_shape(0, key()));
    EXPECT_EQ(distinct.rows.dtype(), key().dtype);
    EXPECT_EQ(distinct.index.shape(), (Shape{0}));
    EXPECT_EQ(distinct.index.dtype(), Dtype::Int64);
    EXPECT_EQ(distinct.inverse.shape(), (Shape{0}));
    EXPECT_EQ(distinct.counts.shape(), (Shape{0}));
}

TEST_P(Rule06, a_table_emptied_by_erase_or_clear_is_like_new) {
    Twin twin = this->twin(0);
    twin.insert(sequence(100));
    twin.erase(sequence(100));
    twin.check();
    twin.find(sequence(100));
    twin.compact();
    twin.insert(sequence(100, 50), 2);
    twin.check();
    twin.clear();
    twin.insert(sequence(100, 10), 3);
    twin.check();
}

TH_OVER_KINDS(Rule06, all_kinds());

TEST(Rule06Parts, from_parts_of_no_rows) {
    HashMap map =
        HashMap::from_parts(Tensor::zeros({0, 3}, Dtype::Int32),
                            {Tensor::zeros({0}, Dtype::Float64)}, Tensor::zeros({0}, Dtype::Int32));
    EXPECT_EQ(map.size(), 0);
    EXPECT_EQ(map.key_element(), (Element{Dtype::Int32, {3}}));
    map.activate(Tensor::zeros({1, 3}, Dtype::Int32));
    map.validate();
}

TEST(Rule06Parts, an_empty_batch_may_have_any_stride_and_no_memory) {
    HashMap map = int64_map(1);
    Tensor none = Tensor::borrow_strided(nullptr, {0, 1}, {-800, 8}, Dtype::Int64, true);
    EXPECT_EQ(map.insert(none, {none}).indices.shape(), (Shape{0}));
    EXPECT_EQ(map.find(none).mask.shape(), (Shape{0}));
}

}  // namespace
}  // namespace th_test
