// Contract rule 1 for accumulate: every dtype and every reduction, applied in row order, bit for
// bit, against a loop that takes one row after the other.
#include <cmath>

#include "support/fixtures.hpp"

namespace th_test {
namespace {

constexpr Reduce every_reduce[] = {Reduce::First, Reduce::Last, Reduce::Sum,
                                   Reduce::Min,   Reduce::Max,  Reduce::Prod};

/// Under sanitizers: one dtype of each width and one of each way to add.
std::vector<Dtype> value_dtypes() {
    if (!runs_in_full())
        return {Dtype::Bool, Dtype::UInt16, Dtype::Int64, Dtype::BFloat16, Dtype::Float32};
    return {Dtype::Bool,     Dtype::Int8,    Dtype::Int16,  Dtype::Int32,  Dtype::Int64,
            Dtype::UInt8,    Dtype::UInt16,  Dtype::UInt32, Dtype::UInt64, Dtype::Float16,
            Dtype::BFloat16, Dtype::Float32, Dtype::Float64};
}

void accumulate_twice(Twin& twin, std::vector<Reduce> const& how, std::size_t rows,
                      std::uint64_t universe) {
    for (std::uint64_t round = 0; round < 2; ++round) {
        std::vector<Tensor> values;
        for (Element const& element : twin.oracle.value_elements())
            values.push_back(make_finite_values(element, rows, 7 * round + values.size()));
        twin.accumulate(twin.keys(random_ids(rows, universe, 90 + round)), values, how);
    }
    twin.check();
}

using DtypeAndThreads = std::tuple<Dtype, int>;
class Rule01Accumulate : public ::testing::TestWithParam<DtypeAndThreads> {
protected:
    Rule01Accumulate() : threads_(std::get<1>(GetParam())) {}
    Dtype dtype() const { return std::get<0>(GetParam()); }

private:
    Threads threads_;
};

TEST_P(Rule01Accumulate, joins_rows_in_row_order_with_every_reduce) {
    for (Reduce how : every_reduce)
        for (std::uint64_t universe : {1u, 60u, 12000u}) {
            Twin twin(0, {Dtype::Int32, {3}}, {{dtype(), {}}, {dtype(), {3}}});
            accumulate_twice(twin, {how}, 9000, universe);
        }
}

TEST_P(Rule01Accumulate, small_batches_and_wide_rows) {
    for (Reduce how : every_reduce) {
        Twin twin(0, {Dtype::Int64, {1}}, {{dtype(), {2, 17}}});
        accumulate_twice(twin, {how}, 40, 7);
    }
}

INSTANTIATE_TEST_SUITE_P(Dtypes, Rule01Accumulate,
                         ::testing::Combine(::testing::ValuesIn(value_dtypes()),
                                            ::testing::ValuesIn(thread_counts)),
                         [](::testing::TestParamInfo<DtypeAndThreads> const& at) {
                             return std::string(tensorhash::name(std::get<0>(at.param))) +
                                    "_threads" + std::to_string(std::get<1>(at.param));
                         });

TEST(Rule01AccumulateColumns, each_column_has_its_own_reduce) {
    for (int n : looped_thread_counts()) {
        Threads threads(n);
        Twin twin(0, {Dtype::Int64, {1}},
                  {{Dtype::Float32, {}},
                   {Dtype::Int32, {2}},
                   {Dtype::Float64, {}},
                   {Dtype::Bool, {}},
                   {Dtype::UInt8, {3}}});
        accumulate_twice(twin, {Reduce::Sum, Reduce::Min, Reduce::Max, Reduce::Last, Reduce::First},
                         15000, 500);
    }
}

TEST(Rule01AccumulateColumns, every_key_kind_sums_its_own_rows) {
    for (KeyKind const& kind : sample_kinds()) {
        Threads threads(8);
        Twin twin(0, kind.element, {{Dtype::Float32, {}}});
        accumulate_twice(twin, {Reduce::Sum}, 12000, 3000);
    }
}

TEST(Rule01AccumulateColumns, one_hot_key_among_many_rows_adds_in_row_order) {
    for (int n : looped_thread_counts()) {
        Threads threads(n);
        Twin twin(0, {Dtype::Int64, {1}}, {{Dtype::Float32, {}}});
        Ids ids(many_rows, 5);
        for (std::size_t i = 0; i < ids.size(); i += 97) ids[i] = i;
        twin.accumulate(twin.keys(ids), {make_finite_values({Dtype::Float32, {}}, ids.size(), 3)},
                        {Reduce::Sum});
        twin.check();
    }
}

TEST(Rule01AccumulateColumns, follows_erase_and_reuse) {
    Twin twin(0, {Dtype::Int64, {1}}, {{Dtype::Float64, {}}});
    accumulate_twice(twin, {Reduce::Sum}, 5000, 900);
    twin.erase(sequence(400));
    accumulate_twice(twin, {Reduce::Sum}, 5000, 1200);
}

/// The stored value after inserting `first` and accumulating `second` with `how`.
template <class T>
T joined(T first, T second, Reduce how) {
    HashMap map = make_map(Capacity{4}, {Dtype::Int64, {1}}, {{tensorhash::dtype_of<T>, {}}});
    map.accumulate(int64_keys({1, 1}), {Tensor::from(std::vector<T>{first, second})}, {how});
    return map.get(int64_keys({1}))[0].template as<T>()[0];
}

TEST(Rule01AccumulateColumns, a_nan_propagates_through_min_and_max_from_either_side) {
    float nan = std::numeric_limits<float>::quiet_NaN();
    for (Reduce how : {Reduce::Min, Reduce::Max, Reduce::Sum}) {
        EXPECT_TRUE(std::isnan(joined(nan, 1.0f, how)));
        EXPECT_TRUE(std::isnan(joined(1.0f, nan, how)));
        EXPECT_TRUE(std::isnan(joined(1.0, static_cast<double>(nan), how)));
        EXPECT_TRUE(std::isnan(joined(static_cast<double>(nan), 1.0, how)));
    }
}

TEST(Rule01AccumulateColumns, half_precision_nan_and_infinity) {
    for (Dtype dtype : {Dtype::Float16, Dtype::BFloat16})
        for (Reduce how : {Reduce::Min, Reduce::Max, Reduce::Sum}) {
            bool half = dtype == Dtype::Float16;
            std::uint16_t nan = half ? 0x7e01 : 0x7fc1, one = half ? 0x3c00 : 0x3f80,
                          inf = half ? 0x7c00 : 0x7f80;
            std::uint16_t rows[] = {nan, one, one, nan, inf, one};
            HashMap map = make_map(Capacity{4}, {Dtype::Int64, {1}}, {{dtype, {}}});
            map.accumulate(int64_keys({1, 1, 2, 2, 3, 3}), {Tensor::borrow(rows, {6}, dtype)},
                           {how});
            Tensor out = map.get(int64_keys({1, 2, 3}))[0];
            auto const* bits = static_cast<std::uint16_t const*>(out.data());
            auto is_nan = [&](std::uint16_t x) { return (x & 0x7fff) > inf; };
            EXPECT_TRUE(is_nan(bits[0]) && is_nan(bits[1]));
            EXPECT_EQ(bits[2], how == Reduce::Min ? one : inf);
        }
}

TEST(Rule01AccumulateColumns, integers_wrap_and_bools_or) {
    EXPECT_EQ(joined<std::int8_t>(127, 1, Reduce::Sum), -128);
    EXPECT_EQ(joined<std::int64_t>(INT64_MAX, 1, Reduce::Sum), INT64_MIN);
    EXPECT_EQ(joined<std::uint32_t>(0xffffffffu, 2, Reduce::Sum), 1u);
    EXPECT_EQ(joined<std::uint64_t>(1, UINT64_MAX, Reduce::Max), UINT64_MAX);
    EXPECT_EQ(joined<std::int8_t>(-1, 1, Reduce::Min), -1);
}

TEST(Rule01AccumulateColumns, reduce_names_round_trip_and_others_are_refused) {
    EXPECT_EQ(tensorhash::reduce_from_name("prod"), Reduce::Prod);
    EXPECT_EQ(tensorhash::reduce_from_name("count"), Reduce::Count);
    EXPECT_EQ(tensorhash::reduce_from_name("sum"), Reduce::Sum);
    EXPECT_EQ(tensorhash::reduce_from_name("min"), Reduce::Min);
    EXPECT_EQ(tensorhash::reduce_from_name("max"), Reduce::Max);
    EXPECT_EQ(tensorhash::reduce_from_name("first"), Reduce::First);
    EXPECT_EQ(tensorhash::reduce_from_name("last"), Reduce::Last);
    std::string text =
        message_of<tensorhash::ValueError>([] { tensorhash::reduce_from_name("mean"); });
    EXPECT_NE(text.find("sum"), std::string::npos) << text;
    EXPECT_NE(text.find("mean"), std::string::npos) << text;
}

TEST(Rule01AccumulateColumns, any_all_and_count_follow_the_rows) {
    HashMap map = make_map(Capacity{0}, {Dtype::Int64, {}},
                           {{Dtype::Bool, {}}, {Dtype::Bool, {}}, {Dtype::UInt16, {2}}});
    Tensor const keys = Tensor::from(std::vector<std::int64_t>{5, 6, 5, 5, 7});
    Tensor bools = Tensor::zeros({5}, Dtype::Bool);
    bools.as_mutable<bool>()[2] = true;
    bools.as_mutable<bool>()[4] = true;
    Tensor const ignored = Tensor::from(std::vector<std::uint16_t>(10, 900), {5, 2});
    std::vector<Reduce> const how{Reduce::Any, Reduce::All, Reduce::Count};
    map.accumulate(keys, {bools, bools, ignored}, how);
    map.accumulate(Tensor::from(std::vector<std::int64_t>{7}),
                   {Tensor::zeros({1}, Dtype::Bool), Tensor::zeros({1}, Dtype::Bool),
                    Tensor::zeros({1, 2}, Dtype::UInt16)},
                   how);
    auto const items = map.items();
    EXPECT_EQ(mask_of(items.values[0]), (std::vector<std::uint8_t>{1, 0, 1}));
    EXPECT_EQ(mask_of(items.values[1]), (std::vector<std::uint8_t>{0, 0, 0}));
    EXPECT_EQ(to_vector<std::uint16_t>(items.values[2]),
              (std::vector<std::uint16_t>{3, 3, 1, 1, 2, 2}));
    EXPECT_THROW(map.accumulate(keys, {bools, bools, ignored}, {Reduce::Any}),
                 tensorhash::TypeError);
    EXPECT_THROW(map.accumulate(keys, {bools, bools, ignored}, {Reduce::Count}),
                 tensorhash::TypeError);
    EXPECT_EQ(map.size(), 3);
}

}  // namespace
}  // namespace th_test
