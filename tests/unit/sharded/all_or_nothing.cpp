// A call that throws changes no shard; policies; loading files onto any number of shards.
#include <cstdio>
#include <numeric>

#include "support/address_space.hpp"
#include "support/device.hpp"
#include "support/sharded_twin.hpp"
#include "table/table.hpp"

namespace th_test {
namespace {

using tensorhash::FormatError;
using tensorhash::TypeError;
using tensorhash::ValueError;

Tensor numbers(std::int64_t rows, std::int64_t first = 0, std::int64_t step = 1) {
    std::vector<std::int64_t> out(static_cast<std::size_t>(rows));
    for (std::int64_t i = 0; i < rows; ++i) out[static_cast<std::size_t>(i)] = first + i * step;
    return Tensor::from(out);
}

ShardedHashMap int_map(int shards, std::string const& policy = "hash") {
    return ShardedHashMap(Capacity{0}, {Dtype::Int64, {}}, {{Dtype::Int64, {}}},
                          devices_under_test(shards), tensorhash::policy_from_name(policy));
}

TEST(ShardedAllOrNothing, if_one_shard_has_no_memory_no_shard_changes) {
#if TH_TEST_SANITIZED
    GTEST_SKIP() << "sanitizers need address space of their own";
#endif
    for (int n : looped_thread_counts()) {
        Threads threads(n);
        // Values of 2 MB: a few for shard 0 fit, but 2000 for shard 1 exceed the limit.
        ShardedHashMap map(Capacity{0}, {Dtype::Int64, {}}, {{Dtype::Int64, {1 << 18}}},
                           devices_under_test(2), tensorhash::mod_policy());
        map.activate(numbers(1));
        std::vector<std::int64_t> keys{2, 4};
        for (std::int64_t i = 0; i < 2000; ++i) keys.push_back(2 * i + 1);
        std::int64_t const before = map.capacity();
        {
            AddressSpaceLimit limit(std::size_t{1} << 30);
            EXPECT_THROW(map.activate(Tensor::from(keys)), std::bad_alloc);
            EXPECT_THROW(map.reserve(Capacity{4000}), std::bad_alloc);
        }
        EXPECT_EQ(map.size(), 1);
        EXPECT_EQ(map.capacity(), before);
        EXPECT_EQ(mask_of(map.contains(numbers(6))), (std::vector<std::uint8_t>{1, 0, 0, 0, 0, 0}));
        map.validate();
        map.activate(numbers(2));
        EXPECT_EQ(map.size(), 2);
    }
}

TEST(ShardedAllOrNothing, a_cancelled_step_leaves_the_table_as_it_was) {
    using tensorhash::table::Table;
    for (bool grows : {false, true}) {
        Table table({Dtype::Int64, {}}, {}, grows ? 4 : 5000);
        std::vector<std::int64_t> first{1, 2, 3};
        std::vector<std::int64_t> second(3000);
        std::iota(second.begin(), second.end(), 2);
        std::vector<std::uint32_t> where(3000);
        std::vector<unsigned char> mask(3000);
        auto const bytes = [](std::vector<std::int64_t> const& keys) {
            return reinterpret_cast<unsigned char const*>(keys.data());
        };
        table.activate(bytes(first), 3, {where.data(), mask.data()});
        auto insertion = table.prepare_insert(bytes(second), 3000, {where.data(), mask.data()});
        table.cancel(insertion);
        table.validate();
        EXPECT_EQ(table.size(), 3u);
        table.find(bytes(second), 3000, {where.data(), mask.data()});
        EXPECT_EQ(std::count(mask.begin(), mask.end(), 1), 2);
        table.activate(bytes(second), 3000, {where.data(), mask.data()});
        EXPECT_EQ(table.size(), 3001u);
        table.validate();
    }
}

TEST(ShardedAllOrNothing, bad_arguments_change_nothing) {
    ShardedHashMap map = int_map(3);
    map.insert(numbers(100), {numbers(100)});
    std::string const before = bytes_of(map.to_bytes());
    Tensor const keys = numbers(10, 1000);
    EXPECT_THROW(map.insert(keys, {numbers(9)}), ValueError);
    EXPECT_THROW(map.insert(keys, {}), ValueError);
    EXPECT_THROW(map.insert(Tensor::zeros({4}, Dtype::Int32), {numbers(4)}), TypeError);
    EXPECT_THROW(map.assign(keys, {Tensor::zeros({10}, Dtype::Float64)}), TypeError);
    EXPECT_THROW(map.get(keys, {numbers(3)}), ValueError);
    EXPECT_THROW(map.insert_into(3, keys, {keys}), tensorhash::IndexError);
    EXPECT_THROW(map.value_tensor(0, 1), tensorhash::IndexError);
    EXPECT_THROW(map.reserve(Capacity{-1}), ValueError);
    EXPECT_THROW(map.reserve(Capacity{std::int64_t{1} << 40}), ValueError);
    auto const fails = [](std::size_t row, void* const* values) {
        *static_cast<std::int64_t*>(values[0]) = -1;
        if (row == 50) throw std::runtime_error("no");
    };
    if (test_device().is_cpu()) {
        EXPECT_THROW(map.update(numbers(100), fails), std::runtime_error);
    }
    EXPECT_TRUE(same_bytes(bytes_of(map.to_bytes()), before));
}

TEST(ShardedPolicy, a_policys_answers_are_checked_and_errors_name_the_row) {
    auto const route = [](Tensor const& keys, int shards, std::span<std::int32_t> shard) {
        auto const key = keys.as<std::int64_t>();
        for (std::size_t i = 0; i < shard.size(); ++i)
            shard[i] = key[i] == 13 ? shards : static_cast<std::int32_t>(key[i] % shards);
    };
    ShardedHashMap map(Capacity{0}, {Dtype::Int64, {}}, {}, cpus(2), {"odd", route});
    try {
        map.activate(numbers(20));
        FAIL();
    } catch (ValueError const& error) {
        EXPECT_STREQ(error.what(), "policy: expected a shard from 0 to 1, got 2 for row 13");
    }
    EXPECT_EQ(map.size(), 0);
}

TEST(ShardedPolicy, mod_refuses_keys_that_are_not_one_integer) {
    auto const make = [](Element key) {
        return ShardedHashMap(Capacity{0}, std::move(key), {}, devices_under_test(2),
                              tensorhash::mod_policy());
    };
    EXPECT_THROW(make({Dtype::Float64, {}}), TypeError);
    EXPECT_THROW(make({Dtype::Int32, {3}}), ValueError);
    make({Dtype::UInt8, {1}});
    EXPECT_THROW(tensorhash::policy_from_name("murmur"), ValueError);
}

TEST(ShardedPolicy, the_shard_hash_is_independent_of_the_table_hash) {
    // If both used one hash with mod, each shard's table would use only one in `shards` of its
    // slots.
    ShardedHashMap map = int_map(8);
    Tensor const keys = numbers(200000);
    std::vector<std::int64_t> mine;
    auto const shard = to_vector<std::int32_t>(map.shard_of(keys));
    for (std::size_t i = 0; i < shard.size(); ++i)
        if (shard[i] == 3) mine.push_back(static_cast<std::int64_t>(i));
    EXPECT_NEAR(static_cast<double>(mine.size()), 25000, 800);
    tensorhash::table::Table table({Dtype::Int64, {}}, {}, mine.size());
    std::vector<std::uint32_t> where(mine.size());
    std::vector<unsigned char> mask(mine.size());
    auto const* const bytes = reinterpret_cast<unsigned char const*>(mine.data());
    table.activate(bytes, mine.size(), {where.data(), mask.data()});
    EXPECT_LT(table.probe_lengths(bytes, mine.size()).mean, 1.6);
}

TEST(ShardedPolicy, capacity_evenly_spread_keys_fit_without_growth) {
    for (int shards : {1, 2, 7}) {
        ShardedHashMap map(Capacity{100000}, {Dtype::Int64, {}}, {}, devices_under_test(shards));
        std::int64_t const before = map.capacity();
        map.activate(numbers(100000, 12345, 64));
        EXPECT_EQ(map.capacity(), before);
        EXPECT_LT(before, 110000);
    }
}

TEST(ShardedFiles, a_table_comes_back_exactly_or_onto_any_number_of_shards) {
    ShardedHashMap map = int_map(3, "mod");
    map.insert(numbers(5000, -700), {numbers(5000)});
    map.erase(numbers(900, -100, 3));
    Tensor const all = numbers(6000, -900);
    std::string const name =
        ::testing::TempDir() + "sharded-" + std::to_string(getpid()) + ".thash";
    map.save(name);
    ShardedHashMap const same = ShardedHashMap::load(name);
    EXPECT_EQ(same.policy().name, "mod");
    EXPECT_TRUE(same_bytes(same.to_bytes(), map.to_bytes()));
    EXPECT_TRUE(same_bytes(same.find(all).indices, map.find(all).indices));
    for (int shards : {1, 2, 5}) {
        for (char const* policy : {"mod", "hash"}) {
            ShardedHashMap const other = ShardedHashMap::load(name, devices_under_test(shards),
                                                              tensorhash::policy_from_name(policy));
            other.validate();
            EXPECT_EQ(other.shards(), static_cast<std::size_t>(shards));
            EXPECT_EQ(other.size(), map.size());
            auto const got = other.get_with_mask(all);
            auto const want = map.get_with_mask(all);
            EXPECT_TRUE(same_bytes(got.mask, want.mask));
            EXPECT_TRUE(same_bytes(got.values[0], want.values[0]));
        }
    }
    HashMap single = HashMap::from_items(numbers(50), {numbers(50)});
    single.save(name);
    EXPECT_EQ(ShardedHashMap::load(name, devices_under_test(4)).size(), 50);
    std::remove(name.c_str());
}

TEST(ShardedFiles, damaged_bytes_are_refused) {
    ShardedHashMap map = int_map(2);
    map.insert(numbers(40), {numbers(40)});
    std::string const good = bytes_of(map.to_bytes());
    auto const load = [](std::string const& bytes) {
        return ShardedHashMap::from_bytes(
            Tensor::from(std::vector<std::uint8_t>(bytes.begin(), bytes.end())));
    };
    load(good).validate();
    for (std::size_t at = 0; at < good.size(); at += 1 + at / 64) {
        EXPECT_ANY_THROW(load(good.substr(0, at)));
        std::string bad = good;
        bad[at] = static_cast<char>(bad[at] ^ 0x10);
        EXPECT_ANY_THROW(load(bad)) << "byte " << at;
    }
    EXPECT_THROW(load(good + "x"), FormatError);
    EXPECT_THROW(load(""), FormatError);
}

TEST(ShardedFiles, a_custom_policy_must_be_given_again) {
    ShardPolicy const own{"mine",
                          [](Tensor const& keys, int shards, std::span<std::int32_t> shard) {
                              auto const key = keys.as<std::int64_t>();
                              for (std::size_t i = 0; i < shard.size(); ++i)
                                  shard[i] = static_cast<std::int32_t>(key[i] / 10 % shards);
                          }};
    ShardedHashMap map(Capacity{0}, {Dtype::Int64, {}}, {}, cpus(2), own);
    map.activate(numbers(100));
    Tensor const image = map.to_bytes();
    EXPECT_THROW(ShardedHashMap::from_bytes(image), ValueError);
    EXPECT_TRUE(same_bytes(ShardedHashMap::from_bytes(image, {}, own).to_bytes(), image));
    EXPECT_EQ(ShardedHashMap::from_bytes(image, {}, tensorhash::hash_policy()).size(), 100);
}

TEST(ShardedFiles, a_long_policy_name_is_cut_between_characters) {
    ShardPolicy const mod = tensorhash::mod_policy();
    std::string euros;
    for (int i = 0; i < 100; ++i) euros += "\xe2\x82\xac";
    std::string const full(256, 'x');
    std::pair<std::string, std::string> const names[] = {
        {std::string(300, 'x'), full},
        {full, full},
        {euros, euros.substr(0, 255)},
        {"x" + euros, "x" + euros.substr(0, 255)},
    };
    for (auto const& [name, kept] : names) {
        ShardedHashMap map(Capacity{0}, {Dtype::Int64, {}}, {}, cpus(2), {name, mod.route});
        EXPECT_EQ(map.policy().name, kept);
        map.activate(numbers(9));
        EXPECT_EQ(ShardedHashMap::from_bytes(map.to_bytes(), {}, mod).size(), 9);
    }
}

TEST(ShardedClone, is_independent) {
    ShardedHashMap map = int_map(2);
    map.insert(numbers(10), {numbers(10)});
    ShardedHashMap copy = map.clone();
    copy.erase(numbers(5));
    if (test_device().is_cpu()) {
        Tensor values = map.value_tensor(0);
        values.as_mutable<std::int64_t>()[0] = 99;
    }
    EXPECT_EQ(map.size(), 10);
    EXPECT_EQ(copy.size(), 5);
    auto const kept = copy.get(numbers(5, 5)).at(0);
    for (std::size_t i = 0; i < 5; ++i)
        EXPECT_EQ(kept.as<std::int64_t>()[i], static_cast<std::int64_t>(i) + 5);
}

}  // namespace
}  // namespace th_test
