// The C interface against careless callers: null arguments, negative counts and absurd ranks give a
// status code and a message, never a crash, and change nothing.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tensorhash/c.h"

namespace {

constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();

/// A plain and a sharded map, each with one entry: 7 -> 0.5.
class CInterfaceMisuse : public testing::Test {
protected:
    void SetUp() override {
        th_element const element{12, 0, nullptr};
        char const* const devices[] = {"cpu:0", "cpu:1"};
        ASSERT_EQ(th_map_create(0, {5, 0, nullptr}, &element, 1, &map), TH_OK);
        ASSERT_EQ(th_sharded_create(0, {5, 0, nullptr}, &element, 1, devices, 2,
                                    {"hash", nullptr, nullptr}, &shards),
                  TH_OK)
            << th_last_error();
        ASSERT_EQ(th_map_insert(map, &key, 1, columns, nullptr, nullptr), TH_OK);
        ASSERT_EQ(th_sharded_accumulate(shards, &key, 1, columns, &last, nullptr, nullptr), TH_OK);
    }
    void TearDown() override {
        std::int64_t size = -1;
        EXPECT_EQ(th_map_size(map, &size), TH_OK);
        EXPECT_EQ(size, 1);
        EXPECT_EQ(th_sharded_size(shards, -1, &size), TH_OK);
        EXPECT_EQ(size, 1);
        EXPECT_EQ(th_map_validate(map), TH_OK);
        EXPECT_EQ(th_sharded_validate(shards), TH_OK);
        th_map_destroy(map);
        th_sharded_destroy(shards);
    }
    /// The call failed with a value error, and the message names the argument.
    static void expect_named(th_status status, std::string const& argument) {
        EXPECT_EQ(status, TH_VALUE_ERROR) << argument;
        EXPECT_EQ(std::string(th_last_error()).rfind(argument + ":", 0), 0u) << th_last_error();
    }

    th_map* map = nullptr;
    th_sharded* shards = nullptr;
    std::int64_t key = 7;
    float value = 0.5f;
    void const* columns[1] = {&value};
    th_reduce last = TH_LAST;
    th_optimizer sgd{TH_SGD, 0.1, 0, 0, 0, 0, 0, 0, 0, 0};
};

int no_room(void*, std::int64_t, th_room*) { return 0; }
int no_sharded_room(void*, std::int64_t, th_sharded_room*) { return 0; }

TEST_F(CInterfaceMisuse, a_null_map_is_an_error_in_every_call) {
    std::int64_t number = 0;
    float row = 0;
    void* out[] = {&row};
    expect_named(th_map_size(nullptr, &number), "map");
    expect_named(th_map_capacity(nullptr, &number), "map");
    expect_named(th_map_reserve(nullptr, 1), "map");
    expect_named(th_map_clear(nullptr), "map");
    expect_named(th_map_validate(nullptr), "map");
    expect_named(th_map_accumulate(nullptr, &key, 1, columns, &last, nullptr, nullptr), "map");
    expect_named(th_map_insert(nullptr, &key, 1, columns, nullptr, nullptr), "map");
    expect_named(th_map_activate(nullptr, &key, 1, nullptr, nullptr), "map");
    expect_named(th_map_find(nullptr, &key, 1, nullptr, nullptr), "map");
    expect_named(th_map_erase(nullptr, &key, 1, nullptr), "map");
    expect_named(th_map_update(nullptr, &key, 1, &row, &sgd, TH_SKIP, TH_IN_ORDER, nullptr), "map");
    expect_named(th_map_get(nullptr, &key, 1, 0, nullptr, 0, &row, nullptr), "map");
    expect_named(th_map_gather(nullptr, nullptr, 0, 0, nullptr, 0, &row), "map");
    expect_named(th_map_replace(nullptr, &key, 1, columns), "map");
    expect_named(th_map_items(nullptr, 1, &number, out, &number), "map");
    expect_named(th_map_export(nullptr, 0, 1, no_room, nullptr, &number), "map");
    expect_named(th_map_memory(nullptr, &number), "map");
    expect_named(th_map_save(nullptr, "file"), "map");
    expect_named(th_map_load("file", nullptr), "map");
    expect_named(th_map_create(0, {5, 0, nullptr}, nullptr, 0, nullptr), "map");
    th_map_destroy(nullptr);
}

TEST_F(CInterfaceMisuse, a_null_sharded_map_is_an_error_in_every_call) {
    std::int64_t number = 0;
    std::int32_t shard = 0;
    float row = 0;
    expect_named(th_sharded_size(nullptr, -1, &number), "map");
    expect_named(th_sharded_capacity(nullptr, -1, &number), "map");
    expect_named(th_sharded_reserve(nullptr, 1), "map");
    expect_named(th_sharded_clear(nullptr), "map");
    expect_named(th_sharded_validate(nullptr), "map");
    expect_named(th_sharded_memory(nullptr, &number), "map");
    expect_named(th_sharded_shard_of(nullptr, &key, 1, &shard), "map");
    expect_named(th_sharded_accumulate(nullptr, &key, 1, columns, &last, nullptr, nullptr), "map");
    expect_named(th_sharded_insert_into(nullptr, 0, &key, 1, columns, nullptr, nullptr), "map");
    expect_named(th_sharded_activate(nullptr, &key, 1, nullptr, nullptr), "map");
    expect_named(th_sharded_find(nullptr, &key, 1, nullptr, nullptr), "map");
    expect_named(th_sharded_erase(nullptr, &key, 1, nullptr), "map");
    expect_named(th_sharded_assign(nullptr, &key, 1, columns, nullptr), "map");
    expect_named(th_sharded_update(nullptr, &key, 1, &row, &sgd, TH_SKIP, TH_IN_ORDER, nullptr),
                 "map");
    expect_named(th_sharded_get(nullptr, &key, 1, 0, nullptr, 0, &row, nullptr), "map");
    expect_named(th_sharded_replace(nullptr, &key, 1, columns), "map");
    expect_named(th_sharded_export(nullptr, 0, kHuge, 1, no_sharded_room, nullptr, &number), "map");
    expect_named(th_sharded_save(nullptr, "file"), "map");
    th_sharded_destroy(nullptr);
}

TEST_F(CInterfaceMisuse, other_null_arguments_are_named) {
    std::int64_t number = 0;
    float row = 0;
    void const* const no_column[] = {nullptr};
    void* const no_room_for_column[] = {nullptr};
    expect_named(th_map_size(map, nullptr), "size");
    expect_named(th_map_capacity(map, nullptr), "capacity");
    expect_named(th_map_memory(map, nullptr), "bytes");
    expect_named(th_map_find(map, nullptr, 1, nullptr, nullptr), "keys");
    expect_named(th_map_insert(map, &key, 1, nullptr, nullptr, nullptr), "values");
    expect_named(th_map_insert(map, &key, 1, no_column, nullptr, nullptr), "values");
    expect_named(th_map_accumulate(map, &key, 1, columns, nullptr, nullptr, nullptr), "reduce");
    expect_named(th_map_update(map, &key, 1, nullptr, &sgd, TH_SKIP, TH_IN_ORDER, nullptr),
                 "gradients");
    expect_named(th_map_update(map, &key, 1, &row, nullptr, TH_SKIP, TH_IN_ORDER, nullptr),
                 "optimizer");
    expect_named(th_map_get(map, &key, 1, 0, nullptr, 0, nullptr, nullptr), "values");
    expect_named(th_map_gather(map, nullptr, 1, 0, nullptr, 0, &row), "indices");
    expect_named(th_map_items(map, 1, nullptr, nullptr, &number), "keys");
    expect_named(th_map_items(map, 1, &number, nullptr, &number), "values");
    expect_named(th_map_items(map, 1, &number, no_room_for_column, &number), "values");
    expect_named(th_map_items(map, 1, &number, nullptr, nullptr), "rows");
    expect_named(th_map_export(map, 0, 1, nullptr, nullptr, &number), "make_room");
    expect_named(th_map_export(map, 0, 1, no_room, nullptr, nullptr), "next");
    expect_named(th_map_save(map, nullptr), "file_name");
    th_map* loaded = nullptr;
    expect_named(th_map_load(nullptr, &loaded), "file_name");
    expect_named(th_memory_take(1, nullptr), "memory");
    expect_named(th_memory_give({nullptr, 64}), "memory.data");
    expect_named(th_new_seed(nullptr), "seed");
    expect_named(th_sharded_size(shards, -1, nullptr), "size");
    expect_named(th_sharded_shard_of(shards, &key, 1, nullptr), "shard");
    expect_named(th_sharded_export(shards, 0, kHuge, 1, nullptr, nullptr, &number), "make_room");
    char const* const nameless[] = {nullptr};
    th_sharded* made = nullptr;
    th_policy const hash{"hash", nullptr, nullptr};
    expect_named(th_sharded_create(0, {5, 0, nullptr}, nullptr, 0, nullptr, 1, hash, &made),
                 "devices");
    expect_named(th_sharded_create(0, {5, 0, nullptr}, nullptr, 0, nameless, 1, hash, &made),
                 "devices");
    char const* const one[] = {"cpu:0"};
    expect_named(th_sharded_create(0, {5, 0, nullptr}, nullptr, 0, one, 1, {}, &made),
                 "policy.name");
    expect_named(th_sharded_create(0, {5, 0, nullptr}, nullptr, 0, one, 1, hash, nullptr), "map");
    EXPECT_EQ(made, nullptr);
}

TEST_F(CInterfaceMisuse, negative_counts_are_named) {
    std::int64_t number = 0;
    float row = 0;
    th_map* made = nullptr;
    th_sharded* sharded = nullptr;
    th_element const element{12, 0, nullptr};
    char const* const one[] = {"cpu:0"};
    th_policy const hash{"hash", nullptr, nullptr};
    expect_named(th_map_create(0, {5, 0, nullptr}, &element, -1, &made), "value_count");
    expect_named(th_map_create(0, {5, 0, nullptr}, nullptr, 1, &made), "values");
    expect_named(th_map_create(-1, {5, 0, nullptr}, &element, 1, &made), "init_capacity");
    expect_named(th_map_reserve(map, -1), "capacity");
    expect_named(th_map_find(map, &key, -1, nullptr, nullptr), "rows");
    expect_named(th_map_erase(map, &key, -1, nullptr), "rows");
    expect_named(th_map_get(map, &key, -1, 0, nullptr, 0, &row, nullptr), "rows");
    expect_named(th_map_items(map, -1, &number, nullptr, &number), "limit");
    EXPECT_EQ(th_map_export(map, -1, 1, no_room, nullptr, &number), TH_VALUE_ERROR);
    EXPECT_EQ(th_map_export(map, 0, -1, no_room, nullptr, &number), TH_VALUE_ERROR);
    th_memory memory{nullptr, 0};
    expect_named(th_memory_take(-1, &memory), "bytes");
    expect_named(th_memory_give({&row, -1}), "memory.bytes");
    expect_named(th_sharded_create(0, {5, 0, nullptr}, &element, -1, one, 1, hash, &sharded),
                 "value_count");
    expect_named(th_sharded_create(0, {5, 0, nullptr}, &element, 1, one, -1, hash, &sharded),
                 "device_count");
    expect_named(th_sharded_erase(shards, &key, -1, nullptr), "rows");
    EXPECT_EQ(th_sharded_size(shards, -2, &number), TH_INDEX_ERROR);
    EXPECT_EQ(th_sharded_size(shards, 2, &number), TH_INDEX_ERROR);
    EXPECT_EQ(th_sharded_insert_into(shards, -1, &key, 1, columns, nullptr, nullptr),
              TH_INDEX_ERROR);
    EXPECT_EQ(th_sharded_export(shards, 5, 4, 1, no_sharded_room, nullptr, &number),
              TH_VALUE_ERROR);
    EXPECT_EQ(made, nullptr);
    EXPECT_EQ(sharded, nullptr);
}

TEST_F(CInterfaceMisuse, absurd_counts_and_ranks_are_refused) {
    th_map* made = nullptr;
    std::int64_t const ones[] = {1, 1, 1, 1};
    // If the rank is impossible, the shape is not read.
    EXPECT_EQ(th_map_create(0, {5, 64, ones}, nullptr, 0, &made), TH_TYPE_ERROR);
    EXPECT_NE(std::string(th_last_error()).find("rank of 0 to 63"), std::string::npos);
    EXPECT_EQ(
        th_map_create(0, {5, std::numeric_limits<std::int32_t>::max(), ones}, nullptr, 0, &made),
        TH_TYPE_ERROR);
    EXPECT_EQ(th_map_create(0, {5, 1, nullptr}, nullptr, 0, &made), TH_VALUE_ERROR);
    std::int64_t const huge[] = {kHuge, kHuge};
    EXPECT_NE(th_map_create(0, {5, 2, huge}, nullptr, 0, &made), TH_OK);
    std::int64_t const negative[] = {-4};
    EXPECT_NE(th_map_create(0, {5, 1, negative}, nullptr, 0, &made), TH_OK);
    EXPECT_NE(th_map_create(kHuge, {5, 0, nullptr}, nullptr, 0, &made), TH_OK);
    EXPECT_EQ(made, nullptr);
    EXPECT_NE(th_map_find(map, &key, kHuge, nullptr, nullptr), TH_OK);
    EXPECT_NE(th_map_insert(map, &key, kHuge / 4, columns, nullptr, nullptr), TH_OK);
    EXPECT_NE(th_map_reserve(map, kHuge), TH_OK);
    EXPECT_NE(th_sharded_find(shards, &key, kHuge, nullptr, nullptr), TH_OK);
    th_memory memory{nullptr, 0};
    EXPECT_EQ(th_memory_take(kHuge, &memory), TH_OUT_OF_MEMORY) << th_last_error();
}

TEST_F(CInterfaceMisuse, choices_that_do_not_exist_are_refused) {
    float row = 0;
    auto const reduce = static_cast<th_reduce>(9);
    expect_named(th_map_accumulate(map, &key, 1, columns, &reduce, nullptr, nullptr), "reduce");
    expect_named(
        th_map_update(map, &key, 1, &row, &sgd, static_cast<th_missing>(3), TH_IN_ORDER, nullptr),
        "missing");
    sgd.kind = static_cast<th_optimizer_kind>(4);
    expect_named(th_map_update(map, &key, 1, &row, &sgd, TH_SKIP, TH_IN_ORDER, nullptr),
                 "optimizer.kind");
    EXPECT_EQ(th_map_get(map, &key, 1, 1, nullptr, 0, &row, nullptr), TH_INDEX_ERROR);
}

}  // namespace
