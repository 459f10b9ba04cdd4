// The functions of elements.hpp: shapes, strides, errors that change nothing. On
// TENSORHASH_TEST_DEVICE.
#include "tensorhash/elements.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "support/device.hpp"
#include "tensorhash/error.hpp"

namespace th_test {
namespace {

using tensorhash::Dtype;
using tensorhash::Tensor;

template <class T>
Tensor array_of(std::vector<T> const& numbers, tensorhash::Shape const& shape = {}) {
    return Tensor::from(numbers, shape).to(test_device());
}

template <class T>
std::vector<T> numbers(Tensor const& tensor) {
    EXPECT_EQ(tensor.device(), test_device());
    Tensor const here = tensor.to(tensorhash::Device{});
    auto const found = here.as<T>();
    return {found.begin(), found.end()};
}

/// Columns 1 and 0 of a [3, 2] array of 0 to 5.
struct Strided {
    Tensor array = array_of<std::int32_t>({0, 1, 2, 3, 4, 5}, {3, 2});
    Tensor view =
        Tensor::borrow_strided(static_cast<std::int32_t*>(array.data()) + 1, {3, 2}, {8, -4},
                               Dtype::Int32, false, array.owner(), array.device());
};

TEST(Elements, casts_and_rows_of_strided_arrays_are_contiguous) {
    Strided const strided;
    EXPECT_EQ(numbers<double>(cast(strided.view, Dtype::Float64)),
              (std::vector<double>{1, 0, 3, 2, 5, 4}));
    Tensor const taken = take_rows(strided.view, array_of<std::int8_t>({-1, 0}));
    EXPECT_EQ(taken.shape(), (tensorhash::Shape{2, 2}));
    EXPECT_EQ(numbers<std::int32_t>(taken), (std::vector<std::int32_t>{5, 4, 1, 0}));
}

TEST(Elements, true_positions_ascend) {
    Tensor const words = array_of<std::int32_t>({7, 0, -1, 0});
    EXPECT_EQ(numbers<std::int64_t>(true_positions(cast(words, Dtype::Bool))),
              (std::vector<std::int64_t>{0, 2}));
    EXPECT_EQ(true_positions(Tensor::zeros({0}, Dtype::Bool, test_device())).size(), 0);
}

TEST(Elements, the_last_of_equal_rows_is_written) {
    Tensor array = array_of<std::int32_t>({1, 2, 3});
    put_rows(array, array_of<std::int64_t>({-1, 0, 2}), array_of<std::int32_t>({7, 8, 9}));
    EXPECT_EQ(numbers<std::int32_t>(array), (std::vector<std::int32_t>{8, 2, 9}));
}

TEST(Elements, views_are_written_and_may_overlap_what_they_read) {
    Strided strided;
    assign(strided.view, strided.array);
    EXPECT_EQ(numbers<std::int32_t>(strided.array), (std::vector<std::int32_t>{1, 0, 3, 2, 5, 4}));
}

TEST(Elements, empty_arrays_are_ordinary) {
    auto const empty_of = [](tensorhash::Shape const& shape, Dtype dtype) {
        return Tensor::borrow(static_cast<void*>(nullptr), shape, dtype, {}, test_device());
    };
    Tensor const none = empty_of({0}, Dtype::Int64);
    EXPECT_EQ(cast(none, Dtype::Bool).size(), 0);
    EXPECT_EQ(true_positions(empty_of({0}, Dtype::Bool)).size(), 0);
    Tensor array = array_of<std::int32_t>({1, 2, 3, 4, 5, 6}, {3, 2});
    EXPECT_EQ(take_rows(array, none).shape(), (tensorhash::Shape{0, 2}));
    put_rows(array, none, empty_of({0, 2}, Dtype::Int32));
    EXPECT_EQ(numbers<std::int32_t>(array), (std::vector<std::int32_t>{1, 2, 3, 4, 5, 6}));
    Tensor nothing = empty_of({0, 2}, Dtype::Int32);
    assign(nothing, empty_of({0, 2}, Dtype::Int32));
    put_rows(nothing, none, nothing);
    EXPECT_THROW((void)take_rows(nothing, array_of<std::int64_t>({0})), tensorhash::IndexError);
    Tensor thin = empty_of({3, 0}, Dtype::Float64);  // rows without bytes
    Tensor const last = array_of<std::int64_t>({-1, 2});
    EXPECT_EQ(take_rows(thin, last).shape(), (tensorhash::Shape{2, 0}));
    put_rows(thin, last, empty_of({2, 0}, Dtype::Float64));
    EXPECT_THROW((void)take_rows(thin, array_of<std::int64_t>({3})), tensorhash::IndexError);
}

TEST(Elements, a_single_element_has_no_rows_but_is_cast_and_written) {
    Tensor one = array_of<float>({2.5}).reshape({});
    EXPECT_EQ(numbers<std::int32_t>(cast(one, Dtype::Int32)), (std::vector<std::int32_t>{2}));
    assign(one, array_of<float>({7}).reshape({}));
    EXPECT_EQ(numbers<float>(one), (std::vector<float>{7}));
    EXPECT_THROW((void)take_rows(one, array_of<std::int64_t>({0})), tensorhash::ValueError);
    EXPECT_THROW((void)true_positions(cast(one, Dtype::Bool)), tensorhash::ValueError);
}

TEST(Elements, a_refused_write_changes_nothing) {
    Tensor array = array_of<std::int32_t>({1, 2, 3});
    Tensor const two = array_of<std::int32_t>({8, 9});
    EXPECT_THROW(put_rows(array, array_of<std::int64_t>({0, 3}), two), tensorhash::IndexError);
    EXPECT_THROW(put_rows(array, array_of<std::int64_t>({0}), two), tensorhash::ValueError);
    EXPECT_THROW(put_rows(array, array_of<float>({0, 1}), two), tensorhash::TypeError);
    EXPECT_THROW(assign(array, two), tensorhash::ValueError);
    Tensor fixed = array.as_read_only();
    EXPECT_THROW(put_rows(fixed, array_of<std::int64_t>({0, 1}), two), tensorhash::ValueError);
    EXPECT_THROW(assign(fixed, array), tensorhash::ValueError);
    EXPECT_THROW((void)true_positions(array), tensorhash::TypeError);
    EXPECT_THROW((void)cast(array, Dtype::Undefined), tensorhash::TypeError);
    EXPECT_EQ(numbers<std::int32_t>(array), (std::vector<std::int32_t>{1, 2, 3}));
    try {
        (void)take_rows(array, array_of<std::int64_t>({0, -4}));
        FAIL() << "row -4 of 3";
    } catch (tensorhash::IndexError const& error) {
        EXPECT_EQ(std::string(error.what()), "indices: row 1: expected -3 to 2, got -4");
    }
}

}  // namespace
}  // namespace th_test
