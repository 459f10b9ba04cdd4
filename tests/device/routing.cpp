// Routing on a device against the policies of the CPU and a plain loop.
// One function has over 50 lines: the checks of one routed batch, in order.
#include "device/routed.hpp"
// The device's headers come first: they choose the form of the steps.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "device/lives.hpp"
#include "device/test_queue.hpp"
#include "tensorhash/sharded/policy.hpp"

namespace th_test {
namespace {

using tensorhash::Tensor;
using tensorhash::backend::ShardRule;
using Routed = tensorhash::device::Routed<TestQueue>;

/// What the policy of the CPU says.
std::vector<std::int32_t> shards_of(Rows const& rows, Element const& key, ShardRule rule,
                                    int shards) {
    tensorhash::Shape shape{static_cast<std::int64_t>(rows.count)};
    shape.insert(shape.end(), key.shape.begin(), key.shape.end());
    std::string canonical_rows;
    for (std::size_t i = 0; i < rows.count; ++i) canonical_rows += canonical(rows[i], key.dtype);
    Tensor keys = Tensor::empty(shape, key.dtype);
    std::memcpy(keys.data(), canonical_rows.data(), canonical_rows.size());
    std::vector<std::int32_t> out(rows.count);
    auto const policy =
        rule == ShardRule::Hash ? tensorhash::hash_policy() : tensorhash::mod_policy();
    policy.route(keys, shards, out);
    return out;
}

/// The caller's rows, shard by shard.
std::vector<std::uint32_t> grouped_rows(std::vector<std::int32_t> const& shard, int shards) {
    std::vector<std::uint32_t> out;
    for (std::int32_t s = 0; s < shards; ++s)
        for (std::size_t row = 0; row < shard.size(); ++row)
            if (shard[row] == s) out.push_back(static_cast<std::uint32_t>(row));
    return out;
}

void check_groups(TestQueue& queue, Rows const& rows, Element const& key, ShardRule rule,
                  int shards) {
    std::vector<std::int32_t> const shard = shards_of(rows, key, rule, shards);
    std::vector<std::uint32_t> const order = grouped_rows(shard, shards);
    OnDevice<unsigned char> const keys(queue, rows.bytes.data(), rows.bytes.size());
    std::uint64_t const before = queue.read_backs;
    Routed const routed(queue, {keys.data(), rows.count}, key,
                        {static_cast<std::size_t>(shards), rule, {}});
    EXPECT_EQ(queue.read_backs, before + (shards > 1 && rows.count != 0 ? 1 : 0));
    ASSERT_EQ(routed.rows(), rows.count);
    ASSERT_EQ(routed.shards(), static_cast<std::size_t>(shards));
    for (std::int32_t s = 0; s < shards; ++s) {
        auto const expected = static_cast<std::size_t>(std::count(shard.begin(), shard.end(), s));
        EXPECT_EQ(routed.rows(static_cast<std::size_t>(s)), expected) << "shard " << s;
    }
    if (shards > 1) {
        OnDevice<std::uint32_t> const listed(queue, rows.count);
        routed.list_rows(listed.data());
        EXPECT_EQ(listed.read(), order);
        OnDevice<unsigned char> const grouped(queue, rows.bytes.size());
        routed.group(keys.data(), rows.width, grouped.data());
        std::string wanted;
        for (std::uint32_t const row : order) wanted += rows[row];
        EXPECT_EQ(grouped.read<char>(), std::vector<char>(wanted.begin(), wanted.end()));
        OnDevice<unsigned char> const back(queue, rows.bytes.size());
        routed.ungroup_rows(grouped.data(), rows.width, back.data());
        EXPECT_EQ(back.read<char>(), std::vector<char>(rows.bytes.begin(), rows.bytes.end()));
    }
    // Grouped row i has the answer i; every third is absent.
    std::vector<std::uint32_t> local(rows.count);
    std::vector<unsigned char> found(rows.count);
    std::vector<std::int64_t> wanted(rows.count);
    std::vector<unsigned char> wanted_mask(rows.count);
    for (std::uint32_t i = 0; i < rows.count; ++i) {
        found[i] = i % 3 == 0 ? 0 : 1;
        local[i] = found[i] != 0 ? i : ~0u;
        std::uint32_t const row = order[i];
        wanted[row] = found[i] != 0 ? std::int64_t{shard[row]} << 32 | i : -1;
        wanted_mask[row] = found[i];
    }
    OnDevice<std::uint32_t> const indices(queue, local.data(), local.size());
    OnDevice<unsigned char> const mask(queue, found.data(), found.size());
    OnDevice<std::int64_t> const global(queue, rows.count);
    OnDevice<unsigned char> const global_mask(queue, rows.count);
    routed.ungroup({indices.data(), mask.data()}, global.data(), global_mask.data());
    EXPECT_EQ(global.read(), wanted);
    EXPECT_EQ(global_mask.read(), wanted_mask);
    OnDevice<unsigned char> const only_mask(queue, rows.count);
    routed.ungroup({indices.data(), mask.data()}, nullptr, only_mask.data());
    EXPECT_EQ(only_mask.read(), wanted_mask);
}

TEST(DeviceRouting, hash_sends_keys_of_every_width_where_the_cpu_sends_them) {
    Element const elements[] = {{Dtype::Int32, {}},   {Dtype::Int64, {}},    {Dtype::UInt8, {3}},
                                {Dtype::Float32, {}}, {Dtype::Float64, {2}}, {Dtype::Float32, {3}},
                                {Dtype::Int32, {3}},  {Dtype::Int32, {4}},   {Dtype::Int64, {4}},
                                {Dtype::UInt8, {13}}};
    for (std::uint64_t seed = 1; seed <= seeds(2); ++seed) {
        for (Element const& key : elements) {
            Random random(seed);
            TestQueue queue({.seed = seed});
            constexpr int kCounts[] = {2, 5, 64};
            Rows const keys = draw_keys(key, random, 300, 120);
            for (int const shards : {1, kCounts[seed % 3]}) {
                check_groups(queue, keys, key, ShardRule::Hash, shards);
            }
        }
    }
}

TEST(DeviceRouting, mod_takes_every_integer_and_is_never_negative) {
    for (Dtype const dtype : {Dtype::Int8, Dtype::Int16, Dtype::Int32, Dtype::Int64, Dtype::UInt8,
                              Dtype::UInt16, Dtype::UInt32, Dtype::UInt64}) {
        Element const key{dtype, {}};
        Random random(3);
        TestQueue queue;
        Rows rows = draw_keys(key, random, 200, 1000);
        // The least number and the greatest.
        std::string const ones(key.bytes(), '\xff');
        std::string low(key.bytes(), '\0');
        low.back() = '\x80';
        rows.bytes.replace(0, key.bytes(), ones);
        rows.bytes.replace(key.bytes(), key.bytes(), low);
        for (int const shards : {2, 3, 7}) {
            check_groups(queue, rows, key, ShardRule::Mod, shards);
        }
    }
}

TEST(DeviceRouting, few_rows_are_ordinary) {
    Random random(5);
    TestQueue queue;
    Element const key{Dtype::Int64, {}};
    for (std::size_t const rows : {0u, 1u, 2u}) {
        for (int const shards : {1, 2, 3, 64}) {
            check_groups(queue, draw_keys(key, random, rows, 10), key, ShardRule::Hash, shards);
        }
    }
}

TEST(DeviceRouting, a_policy_that_has_run_on_the_cpu_is_refused) {
    TestQueue queue;
    EXPECT_THROW(Routed(queue, {nullptr, 0}, {Dtype::Int64, {}}, {2, ShardRule::Given, {}}),
                 tensorhash::DeviceError);
}

}  // namespace
}  // namespace th_test
