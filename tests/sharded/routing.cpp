// What routing may not change: the hash that says whose a key is, batches that lie in the table's own memory, one shard.
#include "sharded/support.hpp"
#include "tensorhash/kernel/key.hpp"

namespace th_test {
namespace {

/// The hash of shards as files and ranks know it, over any bytes.
std::int32_t plain_hash(std::string_view key, std::uint32_t float_bytes, int shards) {
    namespace kernel = tensorhash::kernel;
    kernel::WideAny const reader({static_cast<std::uint32_t>(key.size()), float_bytes});
    auto const* const bytes = reinterpret_cast<unsigned char const*>(key.data());
    std::uint64_t const hash = kernel::mix(reader.hash(bytes) ^ 0xa0761d6478bd642full);
    return static_cast<std::int32_t>((hash >> 32) * static_cast<std::uint64_t>(shards) >> 32);
}

TEST(ShardedRouting, keys_of_every_width_go_where_they_always_went) {
    auto const check = [](Element const& key, std::uint32_t float_bytes) {
        Tensor const keys = make_keys(key, random_ids(5000, 4000, key.bytes()));
        ShardedMap map(Capacity{0}, key, {}, cpus(5));
        auto const shard = to_vector<std::int32_t>(map.shard_of(keys));
        auto const where = to_vector<std::int64_t>(map.activate(keys).indices);
        Rows const rows = rows_of(keys, key);
        for (std::size_t row = 0; row < rows.count; ++row) {
            ASSERT_EQ(shard[row], plain_hash(rows[row], float_bytes, 5)) << key.bytes();
            ASSERT_EQ(where[row] >> 32, shard[row]);
            ASSERT_EQ(shard[row],
                      tensorhash::hash_shard(rows[row].data(), rows[row].size(), float_bytes, 5));
        }
    };
    for (std::int64_t bytes : {1, 2, 3, 4, 7, 8, 9, 12, 16, 24, 31})
        check({Dtype::UInt8, {bytes}}, 0);
    for (std::int64_t count : {1, 2, 3, 4}) {
        check({Dtype::Float32, {count}}, 4);
        check({Dtype::Float64, {count}}, 8);
    }
}

TEST(ShardedRouting, values_out_of_the_table_s_own_buffers_are_read_before_they_change) {
    for (int shards : {1, 3}) {
        Element const element{Dtype::Int64, {}};
        ShardedMap map(Capacity{4000}, element, {element}, cpus(shards));
        std::vector<std::int64_t> ids(1000);
        for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int64_t>(i);
        Tensor const keys = Tensor::from(ids);
        map.insert(keys, {keys});
        // What lies in the first shard's buffer, shifted by one row, back into the table.
        Tensor const buffer = map.value_tensor(0);
        Tensor const own = Tensor::borrow(buffer.data(), {map.size(0)}, Dtype::Int64);
        auto const before = to_vector<std::int64_t>(own);
        std::vector<std::int64_t> shifted(before.begin() + 1, before.end());
        shifted.push_back(before.front());
        map.insert_or_assign(Tensor::from(shifted), {own});
        auto const got = to_vector<std::int64_t>(map.get(Tensor::from(shifted))[0]);
        EXPECT_EQ(got, before);
        map.assign(Tensor::from(before), {own});
        auto const again = to_vector<std::int64_t>(map.get(Tensor::from(before))[0]);
        std::vector<std::int64_t> want(got.size());
        want[0] = got.back();
        for (std::size_t i = 1; i < want.size(); ++i) want[i] = got[i - 1];
        EXPECT_EQ(again, want);
    }
}

TEST(ShardedRouting, one_shard_gives_a_single_table_s_numbers_and_asks_no_policy) {
    int asked = 0;
    ShardPolicy const counting{"counting", [&](Tensor const&, int, std::span<std::int32_t> shard) {
                                   ++asked;
                                   std::fill(shard.begin(), shard.end(), 0);
                               }};
    Element const key{Dtype::Int32, {3}};
    Element const value{Dtype::Float32, {2}};
    ShardedMap many(Capacity{0}, key, {value}, cpus(1), counting);
    int const at_first = asked;
    HashMap one(Capacity{0}, key, {value});
    auto const same = [](Located const& got, Located const& want) {
        auto const local = to_vector<std::int32_t>(want.indices);
        EXPECT_EQ(to_vector<std::int64_t>(got.indices),
                  std::vector<std::int64_t>(local.begin(), local.end()));
        EXPECT_EQ(mask_of(got.mask), mask_of(want.mask));
    };
    for (std::uint64_t step = 0; step < 6; ++step) {
        std::size_t const rows = step % 2 ? 30000 : 100;
        Tensor const keys = make_keys(key, random_ids(rows, 9000, step));
        Tensor const values = make_finite_values(value, rows, step);
        same(many.accumulate(keys, {values}, {Reduce::Sum}),
             one.accumulate(keys, {values}, {Reduce::Sum}));
        same(many.find(keys), one.find(keys));
        EXPECT_TRUE(same_bytes(many.get(keys)[0], one.get(keys)[0]));
        Tensor const some = make_keys(key, random_ids(rows, 9000, step + 77));
        EXPECT_EQ(mask_of(many.erase(some)), mask_of(one.erase(some)));
    }
    EXPECT_EQ(asked, at_first);
}

}  // namespace
}  // namespace th_test
