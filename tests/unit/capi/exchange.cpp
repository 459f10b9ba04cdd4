// Calls of the C interface that use the caller's memory: values with a mask, export in chunks,
// replace.
#include <cstring>
#include <map>
#include <random>
#include <thread>

#include "support/fixtures.hpp"
#include "tensorhash/c.h"

namespace th_test {
namespace {

/// A map of int64 keys to float32 x 2 values, used through C calls only; `oracle` holds the same.
class Pairs {
public:
    using Value = std::array<float, 2>;

    Pairs() {
        static std::int64_t const two[] = {2};
        th_element const value{12, 1, two};
        EXPECT_EQ(th_map_create(0, {5, 0, nullptr}, &value, 1, &map), TH_OK) << th_last_error();
    }
    ~Pairs() { th_map_destroy(map); }
    Pairs(Pairs const&) = delete;
    Pairs& operator=(Pairs const&) = delete;

    void set(std::vector<std::int64_t> const& keys, std::vector<Value> const& rows) {
        void const* const values[] = {rows.data()};
        th_reduce const last = TH_LAST;
        EXPECT_EQ(th_map_accumulate(map, keys.data(), static_cast<std::int64_t>(keys.size()),
                                    values, &last, nullptr, nullptr),
                  TH_OK)
            << th_last_error();
        for (std::size_t i = 0; i < keys.size(); ++i) oracle[keys[i]] = rows[i];
    }
    void erase(std::vector<std::int64_t> const& keys) {
        EXPECT_EQ(th_map_erase(map, keys.data(), static_cast<std::int64_t>(keys.size()), nullptr),
                  TH_OK);
        for (std::int64_t key : keys) oracle.erase(key);
    }
    void fill(std::int64_t count) {
        std::vector<std::int64_t> keys;
        std::vector<Value> rows;
        for (std::int64_t i = 0; i < count; ++i) {
            keys.push_back(i * 7 - count);
            rows.push_back({static_cast<float>(i), static_cast<float>(-i)});
        }
        set(keys, rows);
    }

    th_map* map = nullptr;
    std::map<std::int64_t, Value> oracle;
};

/// Output arrays with a guard row at the end that must stay untouched.
struct Room {
    std::vector<std::int64_t> keys;
    std::vector<Pairs::Value> values;
    std::vector<std::int32_t> indices;
    void* columns[1] = {nullptr};
    std::int64_t rows = -1;

    static int make(void* self, std::int64_t rows, th_room* room) {
        auto& here = *static_cast<Room*>(self);
        auto const count = static_cast<std::size_t>(rows);
        here.rows = rows;
        here.keys.assign(count + 1, -77);
        here.values.assign(count + 1, {-77, -77});
        here.indices.assign(count + 1, -77);
        here.columns[0] = here.values.data();
        *room = {here.keys.data(), here.columns, here.indices.data()};
        return 0;
    }
};

TEST(CInterface, get_says_which_rows_are_there) {
    Pairs pairs;
    pairs.set({4, -9}, {{1, 2}, {3, 4}});
    std::int64_t const asked[] = {-9, 5, 4};
    float const each[] = {10, 11, 12, 13, 14, 15};
    std::array<float, 6> got{};
    std::array<std::uint8_t, 3> mask{9, 9, 9};
    EXPECT_EQ(th_map_get(pairs.map, asked, 3, 0, each, 1, got.data(), mask.data()), TH_OK);
    EXPECT_EQ(got, (std::array<float, 6>{3, 4, 12, 13, 1, 2}));
    EXPECT_EQ(mask, (std::array<std::uint8_t, 3>{1, 0, 1}));
    EXPECT_EQ(th_map_get(pairs.map, asked, 3, 0, nullptr, 0, nullptr, mask.data()), TH_VALUE_ERROR);
    EXPECT_EQ(th_map_get(pairs.map, nullptr, 0, 0, nullptr, 0, nullptr, nullptr), TH_OK);
}

TEST(CInterface, gather_reads_rows_where_find_found_them) {
    Pairs pairs;
    pairs.fill(100);
    std::int64_t const asked[] = {-100, 6, 593};
    std::array<std::int32_t, 3> indices{};
    ASSERT_EQ(th_map_find(pairs.map, asked, 3, indices.data(), nullptr), TH_OK);
    float const missing[] = {7, 8};
    std::array<Pairs::Value, 3> got{};
    ASSERT_EQ(th_map_gather(pairs.map, indices.data(), 3, 0, missing, 0, got.data()), TH_OK);
    EXPECT_EQ(got[0], pairs.oracle.at(-100));
    EXPECT_EQ(got[1], (Pairs::Value{7, 8}));
    EXPECT_EQ(got[2], pairs.oracle.at(593));
    ASSERT_EQ(th_map_gather(pairs.map, indices.data(), 3, 0, nullptr, 0, got.data()), TH_OK);
    EXPECT_EQ(got[1], (Pairs::Value{0, 0}));
    std::int32_t const beyond[] = {0, 100};
    EXPECT_EQ(th_map_gather(pairs.map, beyond, 2, 0, nullptr, 0, got.data()), TH_INDEX_ERROR);
    std::int32_t const negative[] = {-2};
    EXPECT_EQ(th_map_gather(pairs.map, negative, 1, 0, nullptr, 0, got.data()), TH_INDEX_ERROR);
    EXPECT_EQ(th_map_gather(pairs.map, beyond, 1, 1, nullptr, 0, got.data()), TH_INDEX_ERROR);
}

TEST(CInterface, chunks_of_an_export_are_all_live_rows_once_in_ascending_index) {
    Pairs pairs;
    pairs.fill(1000);
    std::vector<std::int64_t> gone;
    for (std::int64_t i = 0; i < 1000; ++i)
        if (i % 3 == 0 || (i > 400 && i < 700)) gone.push_back(i * 7 - 1000);
    pairs.erase(gone);
    for (std::int64_t limit : {1, 7, 64, 100, 5000}) {
        std::map<std::int64_t, Pairs::Value> seen;
        std::int32_t before = -1;
        std::int64_t next = 0;
        std::int64_t calls = 0;
        while (next >= 0) {
            Room room;
            ASSERT_EQ(th_map_export(pairs.map, next, limit, Room::make, &room, &next), TH_OK);
            ASSERT_LE(room.rows, limit);
            for (std::size_t i = 0; i < static_cast<std::size_t>(room.rows); ++i) {
                EXPECT_GT(room.indices[i], before);
                before = room.indices[i];
                EXPECT_TRUE(seen.emplace(room.keys[i], room.values[i]).second);
            }
            EXPECT_EQ(room.keys.back(), -77);
            EXPECT_EQ(room.values.back()[0], -77);
            EXPECT_EQ(room.indices.back(), -77);
            ++calls;
        }
        EXPECT_EQ(seen, pairs.oracle);
        auto const size = static_cast<std::int64_t>(pairs.oracle.size());
        EXPECT_EQ(calls, (size + limit - 1) / limit);
    }
}

TEST(CInterface, an_export_of_nothing_asks_for_no_rows_and_refusals_are_errors) {
    Pairs pairs;
    Room room;
    std::int64_t next = 5;
    EXPECT_EQ(th_map_export(pairs.map, 0, 10, Room::make, &room, &next), TH_OK);
    EXPECT_EQ(room.rows, 0);
    EXPECT_EQ(next, -1);
    pairs.fill(10);
    EXPECT_EQ(th_map_export(pairs.map, 10, 10, Room::make, &room, &next), TH_OK);
    EXPECT_EQ(room.rows, 0);
    EXPECT_EQ(next, -1);
    auto const refuse = [](void*, std::int64_t, th_room*) { return 1; };
    EXPECT_EQ(th_map_export(pairs.map, 0, 10, refuse, nullptr, &next), TH_VALUE_ERROR);
    EXPECT_EQ(th_map_export(pairs.map, -1, 10, Room::make, &room, &next), TH_VALUE_ERROR);
    EXPECT_EQ(th_map_export(pairs.map, 0, 0, Room::make, &room, &next), TH_VALUE_ERROR);
    EXPECT_EQ(th_map_export(pairs.map, 0, 10, nullptr, nullptr, &next), TH_VALUE_ERROR);
    // Each call released the lock: a writer gets in.
    pairs.set({12345}, {{1, 1}});
    EXPECT_EQ(th_map_validate(pairs.map), TH_OK);
}

TEST(CInterface, replace_leaves_these_rows_and_no_others) {
    Pairs pairs;
    pairs.fill(300);
    std::int64_t const keys[] = {1, 2, 1};
    Pairs::Value const rows[] = {{1, 1}, {2, 2}, {3, 3}};
    void const* const values[] = {rows};
    EXPECT_EQ(th_map_replace(pairs.map, keys, -1, values), TH_VALUE_ERROR);
    std::int64_t size = 0;
    EXPECT_EQ(th_map_size(pairs.map, &size), TH_OK);
    EXPECT_EQ(size, 300);
    ASSERT_EQ(th_map_replace(pairs.map, keys, 3, values), TH_OK) << th_last_error();
    Room room;
    std::int64_t next = 0;
    ASSERT_EQ(th_map_export(pairs.map, 0, 10, Room::make, &room, &next), TH_OK);
    EXPECT_EQ(room.keys, (std::vector<std::int64_t>{1, 2, -77}));
    EXPECT_EQ(room.values[0], (Pairs::Value{3, 3}));
    EXPECT_EQ(room.values[1], (Pairs::Value{2, 2}));
    EXPECT_EQ(th_map_validate(pairs.map), TH_OK);
    ASSERT_EQ(th_map_replace(pairs.map, nullptr, 0, nullptr), TH_OK);
    EXPECT_EQ(th_map_size(pairs.map, &size), TH_OK);
    EXPECT_EQ(size, 0);
}

TEST(CInterface, memory_is_at_least_what_the_buffers_hold) {
    Pairs pairs;
    std::int64_t before = -1;
    EXPECT_EQ(th_map_memory(pairs.map, &before), TH_OK);
    EXPECT_EQ(th_map_reserve(pairs.map, 10000), TH_OK);
    std::int64_t after = -1;
    EXPECT_EQ(th_map_memory(pairs.map, &after), TH_OK);
    EXPECT_GE(after - before, 10000 * 16);
}

TEST(CMemory, is_taken_given_back_and_released) {
    th_memory_release();
    th_memory memory{nullptr, 0};
    for (std::int64_t bytes : {std::int64_t{0}, std::int64_t{1000}, std::int64_t{3} << 20}) {
        ASSERT_EQ(th_memory_take(bytes, &memory), TH_OK) << th_last_error();
        ASSERT_NE(memory.data, nullptr);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.data) % 64, 0u);
        EXPECT_GE(memory.bytes, bytes);
        std::memset(memory.data, 1, static_cast<std::size_t>(memory.bytes));
        std::thread([&] { th_memory_give(memory); }).join();
    }
    void const* const warm = memory.data;
    ASSERT_EQ(th_memory_take(3 << 20, &memory), TH_OK);
    EXPECT_EQ(memory.data, warm) << "what was given back is given out again";
    th_memory_give(memory);
    EXPECT_EQ(th_memory_release(), std::int64_t{3} << 20);
    EXPECT_EQ(th_memory_release(), 0);
    th_memory_give({nullptr, 0});
}

TEST(CMemory, refuses_impossible_sizes) {
    th_memory memory{nullptr, 5};
    EXPECT_EQ(th_memory_take(-1, &memory), TH_VALUE_ERROR);
    EXPECT_STREQ(th_last_error(), "bytes: expected at least 0, got -1");
    EXPECT_EQ(th_memory_take(1, nullptr), TH_VALUE_ERROR);
#if !TH_TEST_SANITIZED
    EXPECT_EQ(th_memory_take(std::int64_t{1} << 60, &memory), TH_OUT_OF_MEMORY);
#endif
    EXPECT_EQ(memory.data, nullptr);
    EXPECT_EQ(memory.bytes, 5);
}

}  // namespace
}  // namespace th_test
