// Contract rule 4: arguments are checked before anything changes. A call that throws leaves the
// table as it was, including capacity, free stack and bytes.
#include <functional>

#include "support/fixtures.hpp"

namespace th_test {
namespace {

using tensorhash::DeviceError;
using tensorhash::IndexError;
using tensorhash::TypeError;
using tensorhash::ValueError;

enum class Kind { Type, Value, Index, Device };

struct BadCall {
    std::string name;
    Kind kind;
    std::string says;  // the argument's name, which the message must contain
    std::function<void(HashMap&)> call;
};

void PrintTo(BadCall const& bad, std::ostream* out) { *out << bad.name; }

Tensor ints(Shape shape) { return Tensor::zeros(std::move(shape), Dtype::Int64); }
Tensor floats(Shape shape) { return Tensor::zeros(std::move(shape), Dtype::Float64); }
Tensor good_keys(std::int64_t rows) {
    std::vector<std::int64_t> keys;
    for (std::int64_t i = 0; i < 2 * rows; ++i) keys.push_back(1000 + i);
    return Tensor::from(keys, {rows, 2});
}
std::vector<Tensor> good_values(std::int64_t rows) { return {floats({rows, 3}), ints({rows})}; }
Tensor on_cuda(Shape shape, Dtype dtype) {
    static std::int64_t memory[64];
    return Tensor::borrow(static_cast<void*>(memory), std::move(shape), dtype, {},
                          {tensorhash::Device::Type::Cuda, 0});
}

/// Bad keys, passed to each operation that takes keys.
std::vector<BadCall> bad_keys() {
    struct Bad {
        std::string name;
        Kind kind;
        Tensor keys;
    };
    std::vector<Bad> bads = {
        {"another_dtype_of_the_same_width", Kind::Type, floats({5, 2})},
        {"another_dtype_of_the_same_bytes", Kind::Type, Tensor::zeros({5, 4}, Dtype::Int32)},
        {"unsigned", Kind::Type, Tensor::zeros({5, 2}, Dtype::UInt64)},
        {"too_many_columns", Kind::Value, ints({5, 3})},
        {"too_few_columns", Kind::Value, ints({5, 1})},
        {"no_columns", Kind::Value, ints({10})},
        {"rank_0", Kind::Value, ints({})},
        {"on_cuda", Kind::Device, on_cuda({5, 2}, Dtype::Int64)},
        {"no_dtype_at_all", Kind::Type, Tensor()},
    };
    std::vector<BadCall> out;
    for (Bad const& bad : bads) {
        auto add = [&](std::string const& verb, std::function<void(HashMap&, Tensor const&)> call) {
            Tensor keys = bad.keys;
            out.push_back({verb + "_keys_" + bad.name, bad.kind, "keys",
                           [call, keys](HashMap& map) { call(map, keys); }});
        };
        add("insert", [](HashMap& m, Tensor const& k) { m.insert(k, good_values(5)); });
        add("activate", [](HashMap& m, Tensor const& k) { m.activate(k); });
        add("insert_or_assign",
            [](HashMap& m, Tensor const& k) { m.insert_or_assign(k, good_values(5)); });
        add("accumulate",
            [](HashMap& m, Tensor const& k) { m.accumulate(k, good_values(5), {Reduce::Sum}); });
        add("find", [](HashMap& m, Tensor const& k) { m.find(k); });
        add("contains", [](HashMap& m, Tensor const& k) { m.contains(k); });
        add("erase", [](HashMap& m, Tensor const& k) { m.erase(k); });
        add("get", [](HashMap& m, Tensor const& k) { m.get(k); });
    }
    return out;
}

/// Bad values, passed to each operation that takes values.
std::vector<BadCall> bad_values() {
    struct Bad {
        std::string name;
        Kind kind;
        std::vector<Tensor> values;
    };
    std::vector<Bad> bads = {
        {"one_column_missing", Kind::Value, {floats({50, 3})}},
        {"one_column_too_many", Kind::Value, {floats({50, 3}), ints({50}), ints({50})}},
        {"none", Kind::Value, {}},
        {"too_short", Kind::Value, {floats({50, 3}), ints({49})}},
        {"too_long", Kind::Value, {floats({51, 3}), ints({50})}},
        {"one_row_for_all", Kind::Value, {floats({1, 3}), ints({50})}},
        {"another_shape", Kind::Value, {floats({50, 2}), ints({50})}},
        {"another_dtype", Kind::Type, {ints({50, 3}), ints({50})}},
        {"another_dtype_of_the_same_bytes", Kind::Type, {floats({50, 3}), floats({50})}},
        {"rank_0", Kind::Value, {floats({50, 3}), ints({})}},
        {"on_cuda", Kind::Device, {floats({50, 3}), on_cuda({50}, Dtype::Int64)}},
    };
    std::vector<BadCall> out;
    for (Bad const& bad : bads) {
        auto add = [&](std::string const& verb,
                       std::function<void(HashMap&, std::vector<Tensor> const&)> call) {
            std::vector<Tensor> values = bad.values;
            out.push_back({verb + "_values_" + bad.name, bad.kind, "value",
                           [call, values](HashMap& map) { call(map, values); }});
        };
        add("insert", [](HashMap& m, std::vector<Tensor> const& v) { m.insert(good_keys(50), v); });
        add("insert_or_assign",
            [](HashMap& m, std::vector<Tensor> const& v) { m.insert_or_assign(good_keys(50), v); });
        add("accumulate", [](HashMap& m, std::vector<Tensor> const& v) {
            m.accumulate(good_keys(50), v, {Reduce::Sum});
        });
    }
    return out;
}

/// Bad counts, columns, reductions and defaults.
std::vector<BadCall> other_bad_calls() {
    return {
        {"accumulate_no_reduce", Kind::Value, "reduce",
         [](HashMap& m) { m.accumulate(good_keys(5), good_values(5), {}); }},
        {"accumulate_three_reduces", Kind::Value, "reduce",
         [](HashMap& m) {
             m.accumulate(good_keys(5), good_values(5), {Reduce::Sum, Reduce::Sum, Reduce::Sum});
         }},
        {"accumulate_unknown_reduce", Kind::Value, "reduce",
         [](HashMap& m) { m.accumulate(good_keys(5), good_values(5), {static_cast<Reduce>(77)}); }},
        {"reserve_negative", Kind::Value, "capacity", [](HashMap& m) { m.reserve(Capacity{-1}); }},
        {"reserve_beyond_the_limit", Kind::Value, "capacity",
         [](HashMap& m) { m.reserve(Capacity{1ll << 31}); }},
        {"value_tensor_of_no_column", Kind::Index, "2", [](HashMap& m) { m.value_tensor(2); }},
        {"get_default_another_dtype", Kind::Type, "default",
         [](HashMap& m) { m.get(good_keys(5), {floats({3}), floats({})}); }},
        {"get_default_another_shape", Kind::Value, "default",
         [](HashMap& m) { m.get(good_keys(5), {floats({4}), ints({})}); }},
        {"get_default_too_few_rows", Kind::Value, "default",
         [](HashMap& m) { m.get(good_keys(5), {floats({4, 3}), ints({})}); }},
        {"get_default_one_column_missing", Kind::Value, "default",
         [](HashMap& m) { m.get(good_keys(5), {floats({3})}); }},
    };
}

std::vector<BadCall> all_bad_calls() {
    std::vector<BadCall> out = bad_keys();
    for (BadCall& bad : bad_values()) out.push_back(std::move(bad));
    for (BadCall& bad : other_bad_calls()) out.push_back(std::move(bad));
    return out;
}

class Rule04 : public ::testing::TestWithParam<BadCall> {};

HashMap used_table() {
    HashMap map =
        make_map(Capacity{8}, {Dtype::Int64, {2}}, {{Dtype::Float64, {3}}, {Dtype::Int64, {}}});
    map.insert(make_keys(map.key_element(), sequence(20)),
               make_columns(map.value_elements(), 20, 1));
    map.erase(make_keys(map.key_element(), sequence(7, 5)));
    return map;
}

TEST_P(Rule04, a_call_that_throws_changes_nothing_and_names_the_argument) {
    BadCall const& bad = GetParam();
    HashMap map = used_table();
    std::string before = bytes_of(map.to_bytes());
    std::int64_t capacity = map.capacity();
    void const* buffer = map.value_tensor().data();
    auto call = [&] { bad.call(map); };
    std::string text = bad.kind == Kind::Type    ? message_of<TypeError>(call)
                       : bad.kind == Kind::Value ? message_of<ValueError>(call)
                       : bad.kind == Kind::Index ? message_of<IndexError>(call)
                                                 : message_of<DeviceError>(call);
    EXPECT_NE(text.find(bad.says), std::string::npos) << text;
    EXPECT_EQ(map.capacity(), capacity);
    EXPECT_EQ(static_cast<Tensor const&>(map.value_tensor()).data(), buffer);
    EXPECT_TRUE(same_bytes(map.to_bytes(), before));
    map.validate();
}

INSTANTIATE_TEST_SUITE_P(BadCalls, Rule04, ::testing::ValuesIn(all_bad_calls()),
                         [](::testing::TestParamInfo<BadCall> const& at) { return at.param.name; });

TEST(Rule04Messages, a_dtype_error_says_what_was_expected_and_what_came) {
    HashMap map = used_table();
    std::string text = message_of<TypeError>([&] { map.find(floats({5, 2})); });
    EXPECT_NE(text.find("int64"), std::string::npos) << text;
    EXPECT_NE(text.find("float64"), std::string::npos) << text;
}

TEST(Rule04Messages, a_shape_error_says_what_was_expected_and_what_came) {
    HashMap map = used_table();
    std::string text = message_of<ValueError>([&] { map.find(ints({5, 7})); });
    EXPECT_NE(text.find("(5, 7)"), std::string::npos) << text;
    EXPECT_NE(text.find("2"), std::string::npos) << text;
}

TEST(Rule04Construct, impossible_tables_are_refused) {
    Element key{Dtype::Int64, {1}};
    EXPECT_THROW(make_map(Capacity{-1}, key, {}), ValueError);
    EXPECT_THROW(make_map(Capacity{1ll << 31}, key, {}), ValueError);
    EXPECT_THROW(make_map(Capacity{4}, {Dtype::Undefined, {1}}, {}), TypeError);
    EXPECT_THROW(make_map(Capacity{4}, {Dtype::Float16, {1}}, {}), TypeError);
    EXPECT_THROW(make_map(Capacity{4}, {Dtype::BFloat16, {1}}, {}), TypeError);
    EXPECT_THROW(make_map(Capacity{4}, key, {{Dtype::Undefined, {}}}), TypeError);
    EXPECT_THROW(make_map(Capacity{4}, {Dtype::Int64, {0}}, {}), ValueError);
    EXPECT_THROW(make_map(Capacity{4}, {Dtype::Int64, {-1}}, {}), ValueError);
    EXPECT_THROW(make_map(Capacity{4}, key, {{Dtype::Int64, {3, 0}}}), ValueError);
    EXPECT_THROW(HashMap(Capacity{4}, key, {}, {tensorhash::Device::Type::Cuda, 0}), DeviceError);
    EXPECT_THROW(HashMap(Capacity{4}, key, {}, {tensorhash::Device::Type::Cpu, 1}), DeviceError);
}

TEST(Rule04Construct, from_items_checks_its_arrays) {
    EXPECT_THROW(HashMap::from_items(ints({3, 1}), {ints({2, 1})}), ValueError);
    EXPECT_THROW(HashMap::from_items(ints({}), {}), ValueError);
    EXPECT_THROW(HashMap::from_items(Tensor::zeros({3}, Dtype::Float16), {}), TypeError);
    EXPECT_THROW(HashMap::from_items(ints({3, 0}), {}), ValueError);
}

TEST(Rule04Construct, thread_counts_out_of_range_are_refused) {
    int before = tensorhash::num_threads();
    EXPECT_THROW(set_num_threads(0), ValueError);
    EXPECT_THROW(set_num_threads(-3), ValueError);
    EXPECT_THROW(set_num_threads(1025), ValueError);
    EXPECT_EQ(tensorhash::num_threads(), before);
}

TEST(Rule04Construct, a_refused_batch_does_not_grow_the_table) {
    HashMap map = int64_map(4);
    EXPECT_THROW(map.insert(ints({100000, 1}), {ints({99999, 1})}), ValueError);
    EXPECT_EQ(map.capacity(), 4);
    EXPECT_EQ(map.size(), 0);
}

}  // namespace
}  // namespace th_test
