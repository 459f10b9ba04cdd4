// Contract rule 8 for the caller's arrays: another thread writes to the keys during a call. The
// call may see any mix of keys, but it must return and leave a valid table.
#include <atomic>
#include <thread>

#include "support/coords.hpp"
#include "support/fixtures.hpp"
#include "support/sharded_twin.hpp"
#include "tensorhash/bounded_map.hpp"
#include "tensorhash/coords/packed_hash_table.hpp"

namespace th_test {
namespace {

#if defined(__SANITIZE_THREAD__)
#define TH_RACES_ON_PURPOSE() GTEST_SKIP() << "a race on purpose"
#else
#define TH_RACES_ON_PURPOSE() static_cast<void>(0)
#endif

/// Overwrites the keys with one of two arrays, again and again, until it is destroyed.
class Scribbler {
public:
    Scribbler(Tensor& keys, Tensor const& first, Tensor const& second)
        : thread_([&keys, first, second, this] {
              auto* const to = static_cast<std::uint32_t*>(keys.data());
              std::size_t const count = keys.bytes() / 4;
              for (std::size_t round = 0; !done_.load(std::memory_order_relaxed); ++round) {
                  auto const* const from = static_cast<std::uint32_t const*>(
                      round % 2 == 0 ? second.data() : first.data());
                  for (std::size_t i = 0; i < count; ++i)
                      __atomic_store_n(to + i, from[i], __ATOMIC_RELAXED);
              }
          }) {}
    ~Scribbler() {
        done_.store(true, std::memory_order_relaxed);
        thread_.join();
    }

private:
    std::atomic<bool> done_{false};
    std::thread thread_;
};

constexpr std::size_t batch_rows = 20000;
constexpr int rounds = 12;

Ids ids_from(std::uint64_t first) {
    Ids ids(batch_rows);
    for (std::size_t i = 0; i < batch_rows; ++i) ids[i] = first + i;
    return ids;
}

/// A capacity with no room for the batch, room for it once, or room for it twice.
std::int64_t capacity_of(int round) { return round % 3 * static_cast<std::int64_t>(batch_rows); }

class Rule08ChangingInput : public ::testing::TestWithParam<int> {
protected:
    Rule08ChangingInput() : threads_(GetParam()) {}

private:
    Threads threads_;
};

Element const narrow{Dtype::Int64, {}};
Element const wide{Dtype::Int32, {3}};
Element const wider{Dtype::UInt8, {64}};

TEST_P(Rule08ChangingInput, insert_ends_and_the_map_is_valid) {
    TH_RACES_ON_PURPOSE();
    for (Element const& key : {narrow, wide, wider})
        for (int round = 0; round < rounds; ++round) {
            HashMap map = make_map(Capacity{capacity_of(round)}, key, {{Dtype::Int64, {}}});
            Tensor const old = make_keys(key, ids_from(0));
            Tensor const fresh = make_keys(key, ids_from(1000000));
            Tensor const values = Tensor::zeros({batch_rows}, Dtype::Int64);
            if (round % 2 == 0) map.insert(old, {values});
            Tensor keys = old.clone();
            {
                Scribbler const scribbler(keys, old, fresh);
                map.insert(keys, {values});
                map.accumulate(keys, {values}, {tensorhash::Reduce::Sum});
                map.erase(keys);
                map.activate(keys);
                (void)map.find(keys);
                (void)tensorhash::unique(keys);
            }
            ASSERT_NO_THROW(map.validate()) << key.bytes() << " bytes, round " << round;
        }
}

TEST_P(Rule08ChangingInput, known_keys_that_turn_into_new_ones_mid_call_get_room) {
    TH_RACES_ON_PURPOSE();
    // The index is nearly full. If keys were counted before they are claimed, the claims could run
    // out of slots.
    for (Element const& key : {narrow, wide})
        for (int round = 0; round < rounds; ++round) {
            // 4000 buckets, and the most that they hold.
            std::int64_t const reserved = key.bytes() <= 8 ? 10000 : 16000;
            std::size_t const held = key.bytes() <= 8 ? 13200 : 21000;
            HashMap map = make_map(Capacity{reserved}, key, {});
            Ids ids(held);
            for (std::size_t i = 0; i < held; ++i) ids[i] = i;
            map.activate(make_keys(key, ids));
            Tensor const old = make_keys(key, ids);
            for (std::uint64_t& id : ids) id += 1000000;
            Tensor const fresh = make_keys(key, ids);
            Tensor keys = old.clone();
            {
                Scribbler const scribbler(keys, old, fresh);
                for (int again = 0; again < 4; ++again) map.activate(keys);
            }
            ASSERT_NO_THROW(map.validate()) << key.bytes() << " bytes, round " << round;
        }
}

TEST_P(Rule08ChangingInput, a_bounded_map_stays_within_its_bound) {
    TH_RACES_ON_PURPOSE();
    for (Element const& key : {narrow, wide})
        for (int round = 0; round < rounds; ++round) {
            constexpr std::int64_t most = 15000;
            tensorhash::BoundedHashMap map(Capacity{most}, key, {{Dtype::Int64, {}}});
            Tensor const old = make_keys(key, ids_from(0));
            Tensor const fresh = make_keys(key, ids_from(15000));
            Tensor const values = Tensor::zeros({batch_rows}, Dtype::Int64);
            Tensor keys = old.clone();
            {
                Scribbler const scribbler(keys, old, fresh);
                for (int again = 0; again < 3; ++again) map.insert(keys, {values});
            }
            EXPECT_EQ(map.capacity(), most);
            EXPECT_LE(map.size(), most);
            ASSERT_NO_THROW(map.validate()) << key.bytes() << " bytes, round " << round;
        }
}

TEST_P(Rule08ChangingInput, every_shard_holds_only_its_own_keys) {
    TH_RACES_ON_PURPOSE();
    for (Element const& key : {narrow, wide})
        for (int round = 0; round < rounds; ++round) {
            ShardedHashMap map(Capacity{capacity_of(round)}, key, {{Dtype::Int64, {}}}, cpus(2));
            Tensor const old = make_keys(key, ids_from(0));
            Tensor const fresh = make_keys(key, ids_from(1000000));
            Tensor const values = Tensor::zeros({batch_rows}, Dtype::Int64);
            Tensor keys = old.clone();
            {
                Scribbler const scribbler(keys, old, fresh);
                map.insert(keys, {values});
                map.erase(keys);
                map.activate(keys);
            }
            ASSERT_NO_THROW(map.validate()) << key.bytes() << " bytes, round " << round;
        }
}

TEST_P(Rule08ChangingInput, replaced_shards_hold_only_their_own_keys) {
    TH_RACES_ON_PURPOSE();
    for (int round = 0; round < rounds; ++round) {
        ShardedHashMap map(Capacity{capacity_of(round)}, narrow, {{Dtype::Int64, {}}}, cpus(2));
        Tensor const old = make_keys(narrow, ids_from(0));
        Tensor const fresh = make_keys(narrow, ids_from(1000000));
        Tensor const values = Tensor::zeros({batch_rows}, Dtype::Int64);
        Tensor keys = old.clone();
        {
            Scribbler const scribbler(keys, old, fresh);
            map.replace(keys, {values});
        }
        ASSERT_NO_THROW(map.validate()) << "round " << round;
    }
}

TEST_P(Rule08ChangingInput, bool_keys_stay_0_or_1) {
    TH_RACES_ON_PURPOSE();
    Element const flags{Dtype::Bool, {16}};
    Tensor const old = make_keys(flags, ids_from(0));
    Tensor fresh = old.clone();  // equal keys with other bytes for true
    auto* const bytes = static_cast<unsigned char*>(fresh.data());
    for (std::size_t i = 0; i < fresh.bytes(); ++i)
        bytes[i] = static_cast<unsigned char>(bytes[i] * 2);
    Tensor const values = Tensor::zeros({batch_rows}, Dtype::Int64);
    for (int round = 0; round < rounds; ++round) {
        Tensor keys = old.clone();
        HashMap map = make_map(Capacity{capacity_of(round)}, flags, {{Dtype::Int64, {}}});
        tensorhash::BoundedHashMap bounded(Capacity{15000}, flags, {{Dtype::Int64, {}}});
        ShardedHashMap sharded(Capacity{capacity_of(round)}, flags, {{Dtype::Int64, {}}}, cpus(2));
        {
            Scribbler const scribbler(keys, old, fresh);
            map.insert(keys, {values});
            bounded.insert(keys, {values});
            sharded.insert(keys, {values});
        }
        ASSERT_NO_THROW(map.validate()) << "round " << round;
        ASSERT_NO_THROW(bounded.validate()) << "round " << round;
        ASSERT_NO_THROW(sharded.validate()) << "round " << round;
    }
}

TEST_P(Rule08ChangingInput, tables_of_coordinates_find_every_row_they_hold) {
    TH_RACES_ON_PURPOSE();
    Tensor const old = tensor_of<std::int32_t>(random_rows(batch_rows, 4, 0, 100000, 1), 4);
    Tensor const fresh = tensor_of<std::int32_t>(random_rows(batch_rows, 4, -100000, 0, 2), 4);
    auto const check = [&](tensorhash::coords::CoordTableBase& table) {
        Tensor keys = old.clone();
        {
            Scribbler const scribbler(keys, old, fresh);
            for (int again = 0; again < 3; ++again) table.insert(keys);
        }
        Tensor const first = table.search(table.vector_keys());
        for (std::int32_t const row : first.as<std::int32_t>()) ASSERT_GE(row, 0);
        EXPECT_EQ(table.unique_index().size(), table.num_distinct());
    };
    for (int round = 0; round < rounds / 5; ++round) {
        tensorhash::coords::PackedHashTable packed(std::nullopt);
        check(packed);
        tensorhash::coords::CoordTable coords;
        check(coords);
    }
}

TEST_P(Rule08ChangingInput, a_table_of_17_bit_columns_holds_or_refuses_what_it_saw) {
    TH_RACES_ON_PURPOSE();
    Tensor const inside = tensor_of<std::int32_t>(random_rows(batch_rows, 4, 0, 65535, 1), 4);
    Tensor const beyond = tensor_of<std::int32_t>(random_rows(batch_rows, 4, 65536, 99999, 2), 4);
    for (int round = 0; round < rounds; ++round) {
        tensorhash::coords::PackedHashTable128 table(std::nullopt);
        Tensor keys = inside.clone();
        {
            Scribbler const scribbler(keys, inside, beyond);
            try {
                table.insert(keys);
            } catch (tensorhash::ValueError const& error) {
                ASSERT_NE(std::string(error.what()).find("coords: row "), std::string::npos);
            }
        }
        Tensor const held = table.vector_keys();
        for (std::int32_t const number : held.as<std::int32_t>()) ASSERT_LE(number, 65535);
    }
}

INSTANTIATE_TEST_SUITE_P(Threads, Rule08ChangingInput, ::testing::Values(1, 2),
                         [](auto const& test) { return "threads" + std::to_string(test.param); });

}  // namespace
}  // namespace th_test
