// MultiDeviceHashTable: every operation, and known defects of similar tables.
#include <cmath>
#include <limits>
#include <thread>
#include <unordered_map>

#include "support/multi_device.hpp"

namespace th_test {
namespace {

using tensorhash::ModPolicy;
using tensorhash::MultiDeviceHashTable;
using tensorhash::ValueError;

TEST(MultiDevice, status_says_what_happened_to_each_row) {
    Use<Mod> use;
    EXPECT_EQ(use.insert({1, 2, 1}, {10, 20, 30}), (Bits{1, 1, 0}));
    EXPECT_EQ(use.insert({2, 3}, {99, 40}), (Bits{0, 1}));
    EXPECT_EQ(use.set({1, 7, 1}, {11, 70, 12}), (Bits{1, 0, 1}));
    EXPECT_EQ(use.get({1, 2, 3, 7}), (Floats{12, 20, 40, -1}));
    EXPECT_EQ(use.remove({2, 2, 8}), (Bits{1, 0, 0}));
    EXPECT_EQ(use.table.get_size(), 2u);
    use.table.insert(Keys{5}.data(), Floats{5}.data(), 1, use.resource);  // without a status
    use.table.clear(use.resource);
    EXPECT_EQ(use.table.get_size(), 0u);
    EXPECT_EQ(use.get({1}), (Floats{-1}));
}

TEST(MultiDeviceDefect, a_key_inserted_again_after_its_removal_is_found) {
    Use<Mod> use;
    for (float round = 1; round < 5; ++round) {
        use.insert({9}, {round});
        EXPECT_EQ(use.get({9}), (Floats{round}));
        EXPECT_EQ(use.remove({9}), (Bits{1}));
        EXPECT_EQ(use.get({9}), (Floats{-1}));
    }
}

TEST(MultiDeviceDefect, churn_never_stores_a_key_twice) {
    Use<Mod> use;
    std::unordered_map<Key, float> model;
    Random random(5);
    for (int step = 0; step < 3000; ++step) {
        Key const key = static_cast<Key>(random.below(64)) * 3;  // all on one shard
        if (random.one_in(2)) {
            EXPECT_EQ(use.remove({key})[0], model.erase(key));
        } else {
            auto const value = static_cast<float>(step);
            EXPECT_EQ(use.insert({key}, {value})[0], model.emplace(key, value).second);
        }
        ASSERT_EQ(use.table.get_size(), model.size());
    }
    for (auto const& [key, value] : model) EXPECT_EQ(use.get({key}), (Floats{value}));
    use.table.map().validate();
}

TEST(MultiDeviceDefect, remove_and_set_of_missing_keys_change_nothing) {
    Use<Mod> use;
    use.insert({1, 4}, {1, 4});
    EXPECT_EQ(use.remove({7, 10, 13}), (Bits{0, 0, 0}));
    EXPECT_EQ(use.set({7, 10}, {0, 0}), (Bits{0, 0}));
    EXPECT_EQ(use.table.get_size(), 2u);
    use.insert({7, 10}, {7, 10});
    EXPECT_EQ(use.get({1, 4, 7, 10}), (Floats{1, 4, 7, 10}));
}

TEST(MultiDeviceDefect, a_full_shard_grows_and_loses_nothing) {
    Use<Mod> use(3);
    Keys keys;
    Floats vals;
    for (Key i = 0; i < 5000; ++i) {
        keys.push_back(3 * i + 1);  // skewed: all belong to shard 1
        vals.push_back(static_cast<float>(i));
    }
    EXPECT_EQ(use.insert(keys, vals), Bits(5000, 1));
    EXPECT_EQ(use.get(keys), vals);
    EXPECT_EQ(use.table.get_size(1), 5000u);
    EXPECT_EQ(use.table.get_size(0), 0u);
}

struct Add {
    void update(float& value, float gradient) const { value += gradient; }
};

TEST(MultiDeviceDefect, update_adds_every_row_and_inserts_no_key) {
    Use<Mod> use;
    use.insert({1, 2}, {100, 200});
    Add add;
    Keys const keys{1, 1, 3, 2, 1};
    Floats const gradients{1, 2, 50, 4, 8};
    auto const found = Use<Mod>::status(5, [&](bool* out) {
        use.table.update(keys.data(), gradients.data(), 5, add, use.resource, out);
    });
    EXPECT_EQ(found, (Bits{1, 1, 0, 1, 1}));
    EXPECT_EQ(use.get({1, 2, 3}), (Floats{111, 204, -1}));
    EXPECT_EQ(use.table.get_size(), 2u);
}

struct Fails {
    void update(float& value, float gradient) const {
        value = 0;
        if (gradient > 900) throw std::runtime_error("too steep");
    }
};

TEST(MultiDeviceDefect, an_update_that_throws_changes_nothing_and_holds_no_lock) {
    Use<Mod> use;
    Keys keys;
    Floats vals;
    for (Key i = 0; i < 1000; ++i) {
        keys.push_back(i);
        vals.push_back(static_cast<float>(i));
    }
    use.insert(keys, vals);
    Fails fails;
    auto const call = [&] {
        use.table.update(keys.data(), vals.data(), keys.size(), fails, use.resource);
    };
    EXPECT_THROW(call(), std::runtime_error);
    EXPECT_EQ(use.get(keys), vals);
    EXPECT_EQ(use.set({5}, {50}), (Bits{1}));
}

TEST(MultiDeviceDefect, readers_and_writers_together_see_whole_batches) {
    Threads threads(4);
    Use<Mod> use;
    Keys keys;
    for (Key i = 0; i < 6000; ++i) keys.push_back(i);
    use.insert(keys, Floats(keys.size(), 0));
    std::atomic<bool> stop{false};
    std::atomic<int> torn{0};
    std::vector<std::thread> readers;
    for (int r = 0; r < 2; ++r)
        readers.emplace_back([&] {
            auto mine = use.table.stream_event_resource_create(1);
            Floats vals(keys.size());
            while (!stop.load()) {
                use.table.get(keys.data(), vals.data(), nullptr, keys.size(), mine);
                for (float const v : vals) torn += v != vals[0];
                Keys dumped(2000);
                Floats dumped_vals(2000);
                use.table.dump_to_cpu(2, dumped.data(), dumped_vals.data(), 2000, 64);
                for (float const v : dumped_vals) torn += v != dumped_vals[0];
            }
        });
    for (int round = 1; round < 60; ++round)
        use.set(keys, Floats(keys.size(), static_cast<float>(round)));
    stop = true;
    for (std::thread& reader : readers) reader.join();
    EXPECT_EQ(torn.load(), 0);
}

TEST(MultiDeviceDefect, readers_never_see_half_of_an_insert_a_removal_or_a_clear) {
    Threads threads(4);
    Use<Mod> use;
    Keys keys;
    for (Key i = 0; i < 6000; ++i) keys.push_back(i);
    std::atomic<bool> stop{false};
    std::atomic<int> torn{0};
    std::vector<std::thread> readers;
    for (int r = 0; r < 2; ++r)
        readers.emplace_back([&] {
            auto mine = use.table.stream_event_resource_create(1);
            Floats vals(keys.size());
            while (!stop.load()) {
                Bits const found = Use<Mod>::status(keys.size(), [&](bool* out) {
                    use.table.get(keys.data(), vals.data(), out, keys.size(), mine);
                });
                for (std::uint8_t const f : found) torn += f != found[0];
                for (float const v : vals) torn += v != vals[0];
                std::size_t const all = use.table.get_size(), part = use.table.get_size(2);
                torn += all != 0 && all != 6000;
                torn += part != 0 && part != 2000;
            }
        });
    for (int round = 1; round < 60; ++round) {
        use.insert(keys, Floats(keys.size(), static_cast<float>(round)));
        if (round % 2 == 0) {
            use.remove(keys);
        } else {
            use.table.clear(use.resource);
        }
    }
    stop = true;
    for (std::thread& reader : readers) reader.join();
    EXPECT_EQ(torn.load(), 0);
}

TEST(MultiDeviceDefect, two_writers_take_turns) {
    Threads threads(4);
    Keys keys;
    for (Key i = 0; i < 6000; ++i) keys.push_back(i);
    for (int round = 0; round < 20; ++round) {
        Use<Mod> use;
        std::vector<Bits> added(2);
        std::vector<std::thread> writers;
        for (std::size_t w = 0; w < 2; ++w)
            writers.emplace_back(
                [&, w] { added[w] = use.insert(keys, Floats(6000, static_cast<float>(w))); });
        for (std::thread& writer : writers) writer.join();
        std::size_t const first = added[0][0] ? 0 : 1;
        EXPECT_EQ(added[first], Bits(6000, 1));
        EXPECT_EQ(added[1 - first], Bits(6000, 0));
        EXPECT_EQ(use.get(keys), Floats(6000, static_cast<float>(first)));
    }
}

TEST(MultiDeviceDefect, negative_keys_have_a_shard) {
    ModPolicy<Key> const mod;
    for (Key key = -20; key <= 20; ++key) EXPECT_EQ(mod(3, key), ((key % 3) + 3) % 3);
    EXPECT_EQ(mod(7, std::numeric_limits<Key>::min()), 6);  // -2^63 = -7 * k + 6
    EXPECT_EQ(ModPolicy<std::uint64_t>()(10, ~std::uint64_t{0}), 5);
    Use<Mod> use;
    Keys const keys{-1, -2, -3, -4, std::numeric_limits<Key>::min()};
    use.insert(keys, {1, 2, 3, 4, 5});
    EXPECT_EQ(use.get(keys), (Floats{1, 2, 3, 4, 5}));
    EXPECT_EQ(use.table.get_size(2), 2u);  // -1 and -4
}

TEST(MultiDeviceDefect, strided_keys_spread_with_the_default_policy) {
    Use<MultiDeviceHashTable<Key, float>> use;
    for (Key stride : {Key{3}, Key{16}, Key{1} << 32}) {
        use.table.clear(use.resource);
        Keys keys;
        for (Key i = 0; i < 3000; ++i) keys.push_back(i * stride);
        use.insert(keys, Floats(keys.size(), 1));
        for (int device : ids) {
            EXPECT_GT(use.table.get_size(device), 850u);
            EXPECT_LT(use.table.get_size(device), 1150u);
        }
    }
}

TEST(MultiDeviceDefect, policies_and_optimizers_with_state_are_honoured) {
    struct Above {
        Key border;
        int operator()(int, Key key) const { return key > border ? 1 : 0; }
    };
    MultiDeviceHashTable<Key, float, Above> table(10, ids, 2, Above{100});
    auto resource = table.stream_event_resource_create(0);
    Keys const keys{5, 500, 101, 100};
    table.insert(keys.data(), Floats{1, 2, 3, 4}.data(), 4, resource);
    EXPECT_EQ(table.get_size(0), 2u);
    struct Count {
        std::atomic<int> calls{0};
        void update(float& value, float gradient) {
            value -= gradient;
            ++calls;
        }
    } count;
    table.update(keys.data(), Floats{1, 1, 1, 1}.data(), 4, count, resource);
    EXPECT_EQ(count.calls.load(), 4);
}

template <class Call>
void expect_len_named(Call call) {
    try {
        call();
        FAIL() << "expected an error that names len";
    } catch (ValueError const& error) {
        EXPECT_EQ(std::string(error.what()).rfind("len: expected at most ", 0), 0u) << error.what();
    }
}

TEST(MultiDeviceDefect, lengths_do_not_wrap) {
    Use<Mod> use;
    Key const key = 1;
    float const val = 1;
    // More rows than a batch may have, including lengths that an int would wrap to 1: refused
    // before memory is read.
    std::size_t const most = std::numeric_limits<std::size_t>::max();
    float out[2];  // uninitialised: it is only written
    Add add;
    for (std::size_t len : {std::size_t{1} << 31, (std::size_t{1} << 32) + 1, most / 2, most}) {
        expect_len_named([&] { use.table.insert(&key, &val, len, use.resource); });
        expect_len_named([&] { use.table.set(&key, &val, len, use.resource); });
        expect_len_named([&] { use.table.get(&key, out, nullptr, len, use.resource); });
        expect_len_named([&] { use.table.update(&key, &val, len, add, use.resource); });
        expect_len_named([&] { use.table.remove(&key, len, use.resource); });
        expect_len_named([&] { use.table.insert_from_cpu(1, &key, &val, len, 16); });
    }
    use.table.get(&key, out, nullptr, 1, use.resource);
    EXPECT_EQ(out[0], 0.0f);
    EXPECT_EQ(use.table.get_size(), 0u);
}

TEST(MultiDeviceDefect, dumps_check_their_length_before_they_write) {
    Use<Mod> use;
    use.insert({0, 3, 6}, {1, 2, 3});
    Keys keys(8, 77);
    Floats vals(8, 77);
    for (std::size_t len : {std::size_t{2}, std::size_t{4}, std::size_t{0}}) {
        EXPECT_THROW(use.table.dump_to_cpu(0, keys.data(), vals.data(), len, 16), ValueError);
        EXPECT_THROW(use.table.dump_to_gpu(0, keys.data(), vals.data(), len), ValueError);
    }
    EXPECT_EQ(keys, Keys(8, 77));
    use.table.dump_to_cpu(0, keys.data(), vals.data(), 3, 16);
    EXPECT_EQ((Keys{keys[0], keys[1], keys[2], keys[3]}), (Keys{0, 3, 6, 77}));
    EXPECT_EQ((Floats{vals[0], vals[1], vals[2], vals[3]}), (Floats{1, 2, 3, 77}));
}

TEST(MultiDeviceDefect, no_key_is_reserved) {
    Use<Mod> use;
    Keys const keys{std::numeric_limits<Key>::max(), std::numeric_limits<Key>::min(), -1, 0};
    EXPECT_EQ(use.insert(keys, {1, 2, 3, 4}), (Bits{1, 1, 1, 1}));
    EXPECT_EQ(use.get(keys), (Floats{1, 2, 3, 4}));
    MultiDeviceHashTable<double, int> floats(4, std::vector<std::string>{"cpu:0", "cpu:1"});
    auto resource = floats.stream_event_resource_create(1);
    double const zeros[] = {0.0, -0.0, std::nan("1"), -std::nan("2")};
    int const numbers[] = {1, 2, 3, 4};
    floats.insert(zeros, numbers, 4, resource);
    EXPECT_EQ(floats.get_size(), 2u) << "0 and -0 are one key, all NaNs are one";
}

TEST(MultiDeviceErrors, a_key_on_the_wrong_device_is_refused_by_row) {
    Use<Mod> use;
    Keys const keys{1, 4, 5, 7};
    Floats const vals{1, 2, 3, 4};
    try {
        use.table.insert_from_cpu(1, keys.data(), vals.data(), 4, 16);
        FAIL() << "row 2 belongs to cpu:2";
    } catch (ValueError const& error) {
        EXPECT_NE(std::string(error.what()).find("row 2 belongs to cpu:2"), std::string::npos);
    }
    EXPECT_EQ(use.table.get_size(), 0u);
    use.table.insert_from_cpu(1, keys.data(), vals.data(), 2, 16);
    EXPECT_EQ(use.get({1, 4}), (Floats{1, 2}));
}

TEST(MultiDevice, insert_from_cpu_reports_what_it_added) {
    Use<Mod> use;
    use.insert({4, 5}, {40, 50});
    Keys const keys{1, 4, 1, 7};
    Floats const vals{10, 20, 30, 70};
    auto const added = [&] {
        return Use<Mod>::status(4, [&](bool* out) {
            use.table.insert_from_cpu(1, keys.data(), vals.data(), 4, 16, 2, out);
        });
    };
    EXPECT_EQ(added(), (Bits{1, 0, 0, 1}));
    EXPECT_EQ(added(), (Bits{0, 0, 0, 0}));
    EXPECT_EQ(use.get({1, 4, 5, 7}), (Floats{10, 40, 50, 70}));
}

TEST(MultiDeviceErrors, impossible_calls_are_refused_with_a_message) {
    Use<Mod> use;
    Keys const keys{1};
    Floats vals{1};
    EXPECT_THROW(use.table.get_size(9), ValueError);
    EXPECT_THROW(use.table.stream_event_resource_create(3), ValueError);
    EXPECT_THROW(use.table.insert(nullptr, vals.data(), 1, use.resource), ValueError);
    EXPECT_THROW(use.table.insert(keys.data(), nullptr, 1, use.resource), ValueError);
    EXPECT_THROW(use.table.get(keys.data(), nullptr, nullptr, 1, use.resource), ValueError);
    EXPECT_THROW(use.table.insert_from_cpu(1, keys.data(), vals.data(), 1, 0), ValueError);
    use.table.insert(nullptr, nullptr, 0, use.resource);
    use.table.stream_event_resource_destroy(use.resource);
    EXPECT_THROW(use.table.clear(use.resource), ValueError);
    EXPECT_THROW(Mod(10, ids, 0), ValueError);
    EXPECT_THROW(Mod(10, nullptr, 2), ValueError);
    EXPECT_THROW(Mod(10, {"cpu:0", "gpu"}), ValueError);
}

TEST(MultiDeviceTypes, keys_and_values_may_be_structs) {
    struct Cell {
        std::int32_t x, y;
    };
    struct Weight {
        double w;
        char tag;
    };
    MultiDeviceHashTable<Cell, Weight> table(4, {"cpu:0", "cpu:1"});
    auto resource = table.stream_event_resource_create(0);
    Cell const cells[] = {{1, 2}, {-1, 2}, {1, 2}};
    Weight const weights[] = {{0.5, 'a'}, {1.5, 'b'}, {2.5, 'c'}};
    table.insert(cells, weights, 3, resource);
    Weight got[3];
    table.get(cells, got, nullptr, 3, resource);
    EXPECT_EQ(table.get_size(), 2u);
    EXPECT_EQ(got[1].tag, 'b');
    EXPECT_EQ(got[2].w, 0.5);
}

}  // namespace
}  // namespace th_test
