// Batches over shards give the same result as their rows one by one, for any number of shards and
// threads.
#include <map>

#include "support/sharded_twin.hpp"

namespace th_test {
namespace {

struct Case {
    std::string name;
    Element key;
    int shards;
    std::string policy;
};

using CaseAndThreads = std::tuple<Case, int>;

class ShardedOrder : public ::testing::TestWithParam<CaseAndThreads> {
protected:
    ShardedOrder() : threads_(std::get<1>(GetParam())) {}
    static Case const& test() { return std::get<0>(GetParam()); }

private:
    Threads threads_;
};

std::vector<Case> cases() {
    std::vector<Case> out;
    auto const add = [&](std::string name, Dtype dtype, Shape shape, int shards,
                         std::string policy) {
        out.push_back({std::move(name), {dtype, std::move(shape)}, shards, std::move(policy)});
    };
    add("one_shard", Dtype::Int64, {1}, 1, "hash");
    add("i64_mod", Dtype::Int64, {}, 3, "mod");
    add("i32x3_hash", Dtype::Int32, {3}, 2, "hash");
    add("f64_hash", Dtype::Float64, {}, 5, "hash");
    add("f32x3_hash", Dtype::Float32, {3}, 4, "hash");
    return out;
}

std::string case_name(::testing::TestParamInfo<CaseAndThreads> const& test) {
    return std::get<0>(test.param).name + "_threads" + std::to_string(std::get<1>(test.param));
}
INSTANTIATE_TEST_SUITE_P(Shards, ShardedOrder,
                         ::testing::Combine(::testing::ValuesIn(cases()),
                                            ::testing::ValuesIn(thread_counts)),
                         case_name);

TEST_P(ShardedOrder, random_programs_agree_with_an_oracle_for_each_shard) {
    std::vector<Element> const columns{{Dtype::Int64, {}}, {Dtype::Float32, {3}}};
    Element const& key = test().key;
    ShardedTwin twin(test().shards, key, columns, tensorhash::policy_from_name(test().policy));
    Random random(7);
    for (std::uint64_t step = 0; step < 40; ++step) {
        std::size_t const rows = step % 8 == 0 ? 20000 : random.below(300);
        Tensor const keys = make_keys(key, random_ids(rows, step % 3 ? 900 : 12000, step));
        std::vector<Tensor> values;
        for (Element const& column : columns)
            values.push_back(make_finite_values(column, rows, step + 99));
        switch (random.below(9)) {
            case 0:
                twin.insert(keys, values);
                break;
            case 1:
                twin.insert_or_assign(keys, values);
                break;
            case 2:
                twin.accumulate(keys, values, random.one_in(2) ? Reduce::Sum : Reduce::Max);
                break;
            case 3:
                twin.activate(keys);
                break;
            case 4:
                twin.erase(keys);
                break;
            case 5:
                twin.assign(keys, values);
                break;
            case 6:
                twin.get(keys, values);
                break;
            case 7:
                twin.find(keys);
                break;
            default:
                random.one_in(4) ? twin.clear() : twin.compact();
        }
        if (step % 4 == 3) twin.check();
    }
    twin.check();
}

TEST_P(ShardedOrder, a_custom_update_sees_the_rows_of_a_key_in_order) {
    Element const& key = test().key;
    ShardedHashMap map(Capacity{0}, key, {{Dtype::Int64, {}}, {Dtype::Int64, {}}},
                       devices_under_test(test().shards),
                       tensorhash::policy_from_name(test().policy));
    std::size_t const rows = 30000;
    Tensor const keys = make_keys(key, random_ids(rows, 5000, 1));
    map.activate(make_keys(key, sequence(3000)));
    auto const before = map.find(keys);
    Tensor const found = map.update(keys, [](std::size_t row, void* const* values) {
        auto* const last = static_cast<std::int64_t*>(values[0]);
        auto* const mixed = static_cast<std::int64_t*>(values[1]);
        *last = static_cast<std::int64_t>(row);
        *mixed = (*mixed * 31 + static_cast<std::int64_t>(row)) % 1000003;
    });
    EXPECT_EQ(mask_of(found), mask_of(before.mask));
    std::map<std::int64_t, std::pair<std::int64_t, std::int64_t>> want;
    auto const index = before.indices.as<std::int64_t>();
    for (std::size_t row = 0; row < rows; ++row)
        if (index[row] >= 0) {
            auto& [last, mixed] = want[index[row]];
            last = static_cast<std::int64_t>(row);
            mixed = (mixed * 31 + last) % 1000003;
        }
    auto const got = map.get(keys);
    for (std::size_t row = 0; row < rows; ++row) {
        if (index[row] < 0) continue;
        ASSERT_EQ(got[0].as<std::int64_t>()[row], want[index[row]].first);
        ASSERT_EQ(got[1].as<std::int64_t>()[row], want[index[row]].second);
    }
}

TEST(ShardedShapes, empty_batches_and_strided_keys_are_ordinary) {
    ShardedHashMap map(Capacity{10}, {Dtype::Int32, {2}}, {{Dtype::Float32, {2}}},
                       devices_under_test(3));
    auto const none =
        map.insert(Tensor::empty({0, 2}, Dtype::Int32), {Tensor::empty({0, 2}, Dtype::Float32)});
    EXPECT_EQ(none.indices.shape(), Shape{0});
    EXPECT_EQ(none.indices.dtype(), Dtype::Int64);
    EXPECT_EQ(none.mask.shape(), Shape{0});
    EXPECT_EQ(map.get(Tensor::empty({0, 2}, Dtype::Int32)).at(0).shape(), (Shape{0, 2}));
    EXPECT_EQ(map.items().keys.shape(), (Shape{0, 2}));
    EXPECT_EQ(map.active_buf_indices().dtype(), Dtype::Int64);

    std::vector<std::int32_t> memory{1, 2, 3, 4, 5, 6};
    Tensor const backwards =
        Tensor::borrow_strided(memory.data() + 4, {3, 2}, {-8, 4}, Dtype::Int32, true);
    map.activate(backwards);
    EXPECT_EQ(mask_of(map.contains(Tensor::from(memory, {3, 2}))),
              (std::vector<std::uint8_t>{1, 1, 1}));
}

}  // namespace
}  // namespace th_test
