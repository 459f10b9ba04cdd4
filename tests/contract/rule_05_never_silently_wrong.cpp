// Contract rule 5: strides, dtype, shape and device are honoured or refused; no key value is
// reserved. rule_04 tests what is refused; this file tests what must be accepted and right.
#include <cmath>

#include "support/collisions.hpp"
#include "support/fixtures.hpp"

namespace th_test {
namespace {

/// The same rows in another layout; `memory` holds the bytes.
struct Layout {
    std::string name;
    Tensor tensor;
};

/// Copies `packed` into memory of `span` elements, with these strides and the first element at
/// `origin` (all in elements).
Tensor laid_out(Tensor const& packed, Shape const& strides, std::int64_t origin, std::int64_t span,
                std::size_t byte_offset = 0) {
    auto size = static_cast<std::int64_t>(byte_size(packed.dtype()));
    auto memory = std::make_shared<std::vector<char>>(
        static_cast<std::size_t>(span * size) + byte_offset + 8, 'x');
    char* base = memory->data() + byte_offset + origin * size;
    Shape byte_strides;
    for (std::int64_t stride : strides) byte_strides.push_back(stride * size);
    Shape at(packed.shape().size(), 0);
    for (std::int64_t i = 0; i < packed.size(); ++i) {
        std::int64_t offset = 0;
        for (std::size_t d = 0; d < at.size(); ++d) offset += at[d] * byte_strides[d];
        std::memcpy(base + offset, static_cast<char const*>(packed.data()) + i * size,
                    static_cast<std::size_t>(size));
        for (std::size_t d = at.size(); d-- > 0;) {
            if (++at[d] < packed.shape()[d]) break;
            at[d] = 0;
        }
    }
    return Tensor::borrow_strided(base, packed.shape(), byte_strides, packed.dtype(), true, memory);
}

/// C order, with all strides multiplied by `gap`.
Shape spread_strides(Shape const& shape, std::int64_t gap) {
    Shape strides(shape.size());
    std::int64_t step = gap;
    for (std::size_t d = shape.size(); d-- > 0;) {
        strides[d] = step;
        step *= shape[d] * gap;
    }
    return strides;
}

std::int64_t span_of(Shape const& shape, Shape const& strides) {
    std::int64_t span = 1;
    for (std::size_t d = 0; d < shape.size(); ++d) span += (shape[d] - 1) * std::abs(strides[d]);
    return span;
}

std::vector<Layout> layouts_of(Tensor const& packed) {
    Shape const& shape = packed.shape();
    Shape plain = spread_strides(shape, 1);
    Shape wide = spread_strides(shape, 2);
    Shape padded = plain;
    padded[0] += 3;
    Shape reversed = plain;
    reversed[0] = -reversed[0];
    Shape all_reversed = plain;
    for (std::int64_t& stride : all_reversed) stride = -stride;
    Shape fortran(shape.size());
    std::int64_t step = 1;
    for (std::size_t d = 0; d < shape.size(); ++d) {
        fortran[d] = step;
        step *= shape[d];
    }
    std::int64_t end = packed.size() - 1;
    return {
        {"gaps_between_elements", laid_out(packed, wide, 0, span_of(shape, wide))},
        {"padded_rows", laid_out(packed, padded, 0, span_of(shape, padded))},
        {"rows_reversed", laid_out(packed, reversed, plain[0] * (shape[0] - 1), packed.size())},
        {"everything_reversed", laid_out(packed, all_reversed, end, packed.size())},
        {"fortran_order", laid_out(packed, fortran, 0, packed.size())},
        {"unaligned", laid_out(packed, plain, 0, packed.size(), 1)},
    };
}

class Rule05 : public OverKinds {};

TEST_P(Rule05, any_layout_gives_what_the_packed_rows_give) {
    Twin plain = this->twin(0);
    Ids ids = random_ids(500, 300, 1);
    Tensor keys = plain.keys(ids);
    std::vector<Tensor> values = plain.columns(ids.size(), 2);
    plain.insert(keys, values);
    std::string want = bytes_of(plain.table.to_bytes());
    std::vector<Layout> value_layouts = layouts_of(values[1]);
    std::size_t which = 0;
    for (Layout const& layout : layouts_of(keys)) {
        HashMap table = make_map(Capacity{0}, key(), columns());
        table.insert(layout.tensor, {values[0], value_layouts[which++].tensor});
        EXPECT_TRUE(same_bytes(table.to_bytes(), want)) << layout.name;
        EXPECT_EQ(indices_of(table.find(layout.tensor)), indices_of(plain.table.find(keys)))
            << layout.name;
        table.erase(layout.tensor);
        EXPECT_EQ(table.size(), 0) << layout.name;
    }
}

TEST_P(Rule05, a_row_broadcast_by_a_zero_stride) {
    Twin twin = this->twin(0);
    Tensor row = twin.keys({12345});
    Shape strides = row.byte_strides();
    strides[0] = 0;
    Tensor rows =
        Tensor::borrow_strided(row.data(), rows_shape(400, key()), strides, key().dtype, true);
    Located located = twin.table.insert(rows, twin.columns(400, 1));
    EXPECT_EQ(twin.table.size(), 1);
    EXPECT_EQ(mask_of(located)[0], 1);
    EXPECT_EQ(indices_of(located), std::vector<std::int32_t>(400, 0));
}

TEST_P(Rule05, no_key_value_is_reserved) {
    std::vector<std::uint64_t> marks = {0, ~0ull, 1, ~0ull - 1, 1ull << 63, (1ull << 63) - 1};
    std::vector<std::uint64_t> words = marks;
    for (std::uint64_t mark : marks) words.push_back(step::unmix(mark, test_secret));
    Tensor keys = Tensor::zeros(rows_shape(words.size(), key()), key().dtype);
    auto* bytes = static_cast<char*>(keys.data());
    std::size_t width = key().bytes();
    for (std::size_t row = 0; row < words.size(); ++row)
        for (std::size_t at = 0; at < width; at += 8)
            std::memcpy(bytes + row * width + at, &words[row],
                        std::min<std::size_t>(8, width - at));
    make_legal(bytes, keys.bytes(), key().dtype);
    Twin twin = this->twin(0);
    for (int round = 0; round < 3; ++round) {
        twin.find(keys);
        twin.insert(keys, twin.columns(words.size(), 1));
        twin.insert(sequence(20, 100), 2);
        twin.find(keys);
        twin.insert_or_assign(keys, twin.columns(words.size(), 3));
        twin.check();
        twin.erase(keys);
        twin.check();
    }
    twin.insert(keys, twin.columns(words.size(), 4));
    twin.compact();
    twin.insert(sequence(few_rows, 500), 5);
    twin.check();
    twin.clear();
    twin.find(keys);
    twin.check();
}

TH_OVER_KINDS(Rule05, all_kinds());

TEST(Rule05Keys, sentinels_of_other_libraries_are_ordinary_keys) {
    std::vector<std::int64_t> keys = {-1, -2, 0, INT64_MIN, INT64_MAX};
    HashMap map = int64_map();
    EXPECT_EQ(indices_of(map.insert(int64_keys(keys), {int64_keys({1, 2, 3, 4, 5})})),
              (std::vector<std::int32_t>{0, 1, 2, 3, 4}));
    EXPECT_EQ(to_vector<std::int64_t>(map.get(int64_keys(keys))[0]),
              (std::vector<std::int64_t>{1, 2, 3, 4, 5}));
    EXPECT_EQ(mask_of(map.erase(int64_keys({-1, 0}))), (std::vector<std::uint8_t>{1, 1}));
    EXPECT_EQ(indices_of(map.find(int64_keys(keys))), (std::vector<std::int32_t>{-1, 1, -1, 3, 4}));
    map.validate();
}

TEST(Rule05Keys, a_column_of_a_matrix_and_a_transposed_matrix) {
    std::vector<std::int64_t> numbers = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    HashMap map = int64_map();
    map.insert(Tensor::borrow_strided(numbers.data(), {6, 1}, {16, 8}, Dtype::Int64, true),
               {Tensor::borrow_strided(numbers.data() + 11, {6, 1}, {-16, 8}, Dtype::Int64, true)});
    EXPECT_EQ(to_vector<std::int64_t>(map.keys()), (std::vector<std::int64_t>{0, 2, 4, 6, 8, 10}));
    EXPECT_EQ(to_vector<std::int64_t>(map.items().values[0]),
              (std::vector<std::int64_t>{11, 9, 7, 5, 3, 1}));
    HashMap pairs = make_map(Capacity{0}, {Dtype::Int64, {2}}, {});
    pairs.activate(Tensor::borrow_strided(numbers.data(), {3, 2}, {8, 24}, Dtype::Int64, true));
    EXPECT_EQ(to_vector<std::int64_t>(pairs.keys()), (std::vector<std::int64_t>{0, 3, 1, 4, 2, 5}));
}

TEST(Rule05Keys, inputs_are_never_written) {
    std::vector<std::int64_t> keys = {3, 1, 3};
    std::vector<std::int64_t> const before = keys;
    Tensor borrowed = Tensor::borrow(static_cast<void const*>(keys.data()), {3, 1}, Dtype::Int64);
    EXPECT_TRUE(borrowed.read_only());
    HashMap map = int64_map();
    map.insert(borrowed, {borrowed});
    map.accumulate(borrowed, {borrowed}, {Reduce::Sum});
    map.erase(borrowed);
    EXPECT_EQ(keys, before);
}

template <class T>
void float_keys_compare_canonically() {
    T nan = std::numeric_limits<T>::quiet_NaN();
    using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    T odd_nan = std::bit_cast<T>(
        static_cast<Bits>(std::bit_cast<Bits>(nan) | (Bits(1) << (8 * sizeof(T) - 1)) | 5));
    HashMap map = make_map(Capacity{0}, {tensorhash::dtype_of<T>, {}}, {{Dtype::Int64, {}}});
    Tensor keys = Tensor::from(std::vector<T>{T(-0.0), T(0.0), nan, odd_nan, T(1)});
    EXPECT_EQ(indices_of(map.activate(keys)), (std::vector<std::int32_t>{0, 0, 1, 1, 2}));
    Tensor stored = map.keys().to({});
    EXPECT_TRUE(std::signbit(stored.as<T>()[0])) << "stored as the first row gave it";
    EXPECT_EQ(mask_of(map.contains(Tensor::from(std::vector<T>{T(0.0), odd_nan, -nan}))),
              (std::vector<std::uint8_t>{1, 1, 1}));
    EXPECT_EQ(mask_of(map.erase(Tensor::from(std::vector<T>{T(0.0), -nan, nan}))),
              (std::vector<std::uint8_t>{1, 1, 0}));
    EXPECT_EQ(map.size(), 1);
    map.validate();
    HashMap wide = make_map(Capacity{0}, {tensorhash::dtype_of<T>, {3}}, {});
    Tensor rows = Tensor::from(std::vector<T>{0, nan, 1, T(-0.0), odd_nan, 1, 0, nan, 2}, {3, 3});
    EXPECT_EQ(indices_of(wide.activate(rows)), (std::vector<std::int32_t>{0, 0, 1}));
    HashMap again = HashMap::from_bytes(wide.to_bytes());
    EXPECT_EQ(indices_of(again.find(rows)), (std::vector<std::int32_t>{0, 0, 1}));
}

TEST(Rule05Keys, float32_keys_compare_canonically) { float_keys_compare_canonically<float>(); }
TEST(Rule05Keys, float64_keys_compare_canonically) { float_keys_compare_canonically<double>(); }

TEST(Rule05Keys, denormals_and_infinities_are_distinct_keys) {
    double tiny = std::numeric_limits<double>::denorm_min(),
           inf = std::numeric_limits<double>::infinity();
    HashMap map = make_map(Capacity{0}, {Dtype::Float64, {}}, {});
    map.activate(Tensor::from(std::vector<double>{tiny, -tiny, 0.0, inf, -inf}));
    EXPECT_EQ(map.size(), 5);
}

TEST(Rule05Shapes, rows_of_the_right_number_of_elements_are_accepted_in_any_shape) {
    HashMap map = int64_map();
    std::vector<std::int64_t> numbers = {1, 2, 3, 4, 5, 6};
    EXPECT_EQ(indices_of(map.activate(Tensor::from(numbers))),
              (std::vector<std::int32_t>{0, 1, 2, 3, 4, 5}));
    EXPECT_EQ(indices_of(map.find(Tensor::from(numbers, {6, 1, 1}))),
              (std::vector<std::int32_t>{0, 1, 2, 3, 4, 5}));
    map.insert_or_assign(Tensor::from(numbers, {6, 1}), {Tensor::from(numbers)});
    HashMap six = make_map(Capacity{0}, {Dtype::Int64, {2, 3}}, {});
    six.activate(Tensor::from(numbers, {1, 6}));
    six.activate(Tensor::from(numbers, {1, 3, 2}));
    EXPECT_EQ(six.size(), 1);
    EXPECT_EQ(six.keys().shape(), (Shape{1, 2, 3}));
    HashMap scalar = make_map(Capacity{0}, {Dtype::Int64, {}}, {});
    scalar.activate(Tensor::from(numbers, {6, 1}));
    EXPECT_EQ(scalar.keys().shape(), (Shape{6}));
}

TEST(Rule05Shapes, results_do_not_share_memory_with_the_table) {
    HashMap map = int64_map(8);
    map.insert(int64_keys({1, 2}), {int64_keys({10, 20})});
    tensorhash::Items items = map.items();
    map.insert_or_assign(int64_keys({1}), {int64_keys({99})});
    map.erase(int64_keys({2}));
    EXPECT_EQ(to_vector<std::int64_t>(items.keys), (std::vector<std::int64_t>{1, 2}));
    EXPECT_EQ(to_vector<std::int64_t>(items.values[0]), (std::vector<std::int64_t>{10, 20}));
}

TEST(Rule05Shapes, a_tables_own_views_are_legal_arguments) {
    HashMap map = int64_map(4);
    map.insert(int64_keys({1, 2, 3, 4}), {int64_keys({5, 6, 7, 8})});
    map.insert(map.value_tensor(), {map.key_tensor()});
    EXPECT_EQ(to_vector<std::int64_t>(map.keys()),
              (std::vector<std::int64_t>{1, 2, 3, 4, 5, 6, 7, 8}));
    map.accumulate(map.key_tensor(), {map.value_tensor()}, {Reduce::Sum});
    EXPECT_EQ(map.get(int64_keys({8}))[0].as<std::int64_t>()[0], 8);
    EXPECT_EQ(mask_of(map.erase(map.key_tensor())), std::vector<std::uint8_t>(8, 1));
    map.validate();
}

/// A table with two int64 columns, erased entries and room for more.
HashMap table_with_a_hole() {
    HashMap map =
        make_map(Capacity{8}, {Dtype::Int64, {1}}, {{Dtype::Int64, {1}}, {Dtype::Int64, {1}}});
    map.insert(int64_keys({1, 2, 3, 4}), {int64_keys({5, 6, 7, 8}), int64_keys({50, 60, 70, 80})});
    map.erase(int64_keys({2, 3}));
    return map;
}

TEST(Rule05Views, a_view_of_the_keys_as_keys_acts_like_a_copy) {
    // Rows 1 and 2 hold erased keys. Activating the view brings them back with swapped indices.
    HashMap given_view = table_with_a_hole(), given_copy = table_with_a_hole();
    Tensor copy = given_copy.key_tensor().clone();
    EXPECT_EQ(indices_of(given_view.activate(given_view.key_tensor())),
              indices_of(given_copy.activate(copy)));
    EXPECT_TRUE(same_bytes(given_view.keys(), given_copy.keys()));
    given_view.validate();
}

TEST(Rule05Views, views_of_the_columns_as_values_act_like_copies) {
    for (int how = 0; how < 3; ++how) {
        auto apply = [how](HashMap& map, Tensor const& keys, std::vector<Tensor> const& values) {
            if (how == 0) map.insert(keys, values);
            if (how == 1) map.insert_or_assign(keys, values);
            if (how == 2) map.accumulate(keys, values, {Reduce::Sum});
        };
        HashMap given_view = table_with_a_hole(), given_copy = table_with_a_hole();
        Tensor keys = int64_keys({4, 1, 9, 4, 10, 9, 11, 1});
        // Swap the columns, then use the keys as values.
        apply(given_copy, keys,
              {given_copy.value_tensor(1).clone(), given_copy.value_tensor(0).clone()});
        apply(given_view, keys, {given_view.value_tensor(1), given_view.value_tensor(0)});
        EXPECT_TRUE(same_bytes(given_view.to_bytes(), given_copy.to_bytes())) << how;
        apply(given_copy, keys,
              {given_copy.key_tensor().clone(), given_copy.value_tensor(0).clone()});
        apply(given_view, keys, {given_view.key_tensor(), given_view.value_tensor(0)});
        EXPECT_TRUE(same_bytes(given_view.to_bytes(), given_copy.to_bytes())) << how;
        given_view.validate();
    }
}

TEST(Rule05Views, a_view_of_a_column_as_keys_acts_like_a_copy) {
    HashMap given_view = table_with_a_hole(), given_copy = table_with_a_hole();
    std::vector<Tensor> values = {given_copy.value_tensor(1).clone(),
                                  given_copy.value_tensor(0).clone()};
    given_copy.insert_or_assign(given_copy.value_tensor(0).clone(), values);
    given_view.insert_or_assign(given_view.value_tensor(0), values);
    EXPECT_TRUE(same_bytes(given_view.to_bytes(), given_copy.to_bytes()));
    given_view.validate();
}

}  // namespace
}  // namespace th_test
