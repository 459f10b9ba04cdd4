// Routing: the hash that picks a shard never changes, batches in the table's own memory are read
// before they change, and one shard gives the results of a plain table.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "support/sharded_twin.hpp"
#include "tensorhash/step/key.hpp"

namespace th_test {
namespace {

/// The routing rule that files name, over any bytes.
std::int32_t plain_hash(std::string_view key, std::uint32_t float_bytes, int shards) {
    namespace step = tensorhash::step;
    auto const width = static_cast<std::uint32_t>(key.size());
    step::WideAny const reader({width, float_bytes});
    auto const* const bytes = reinterpret_cast<unsigned char const*>(key.data());
    std::uint64_t hash = width;
    for (std::uint32_t at = 0; at < width; at += 8)
        hash = step::mix(hash ^ reader.word_at(bytes, at));
    hash = step::mix(hash ^ 0xa0761d6478bd642full);
    return static_cast<std::int32_t>((hash >> 32) * static_cast<std::uint64_t>(shards) >> 32);
}

TEST(ShardedRouting, the_routing_rule_named_in_files_never_changes) {
    std::map<std::size_t, std::vector<std::int32_t>> const frozen{
        {3, {11, 10, 38, 62, 24, 11, 37, 59}}, {8, {51, 17, 34, 20, 5, 43, 18, 51}},
        {12, {7, 36, 54, 45, 18, 17, 39, 23}}, {16, {57, 36, 42, 25, 34, 20, 0, 44}},
        {20, {43, 1, 13, 37, 59, 34, 27, 21}}, {24, {9, 39, 39, 52, 61, 21, 51, 9}}};
    for (auto const& [width, shards] : frozen)
        for (std::size_t i = 0; i < shards.size(); ++i) {
            std::string key(width, 0);
            for (std::size_t b = 0; b < width; ++b) key[b] = static_cast<char>(i * width + b * 7);
            EXPECT_EQ(tensorhash::hash_shard(key.data(), width, 0, 64), shards[i]) << width;
        }
}

TEST(ShardedRouting, keys_of_every_width_go_where_they_always_went) {
    auto const check = [](Element const& key, std::uint32_t float_bytes) {
        Tensor const keys = make_keys(key, random_ids(5000, 4000, key.bytes()));
        ShardedHashMap map(Capacity{0}, key, {}, devices_under_test(5));
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

TEST(ShardedRouting, values_from_the_tables_own_buffers_are_read_before_they_change) {
    for (int shards : {1, 3}) {
        Element const element{Dtype::Int64, {}};
        ShardedHashMap map(Capacity{4000}, element, {element}, devices_under_test(shards));
        std::vector<std::int64_t> ids(1000);
        for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int64_t>(i);
        Tensor const keys = Tensor::from(ids);
        map.insert(keys, {keys});
        // Write the first shard's buffer, shifted by one row, back into the table.
        Tensor const buffer = map.value_tensor(0);
        Tensor const own =
            Tensor::borrow(buffer.data(), {map.size(0)}, Dtype::Int64, {}, buffer.device());
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

TEST(ShardedRouting, one_shard_gives_the_indices_of_a_plain_table_and_calls_no_policy) {
    int asked = 0;
    ShardPolicy const counting{"counting", [&](Tensor const&, int, std::span<std::int32_t> shard) {
                                   ++asked;
                                   std::fill(shard.begin(), shard.end(), 0);
                               }};
    Element const key{Dtype::Int32, {3}};
    Element const value{Dtype::Float32, {2}};
    ShardedHashMap many(Capacity{0}, key, {value}, cpus(1), counting);
    int const at_first = asked;
    HashMap one(Capacity{0}, key, {value});
    auto const same = [](ShardedLocated const& got, Located const& want) {
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
