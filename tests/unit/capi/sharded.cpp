// Sharded maps through the C interface: each call against ShardedHashMap, and what only C has.
#include <unistd.h>

#include <filesystem>
#include <limits>

#include "support/sharded_twin.hpp"
#include "tensorhash/c.h"

namespace th_test {
namespace {

constexpr std::int64_t kEverything = std::numeric_limits<std::int64_t>::max();

/// A C map of int64 keys to float32 values on two devices, and the same table in C++.
class CShards {
public:
    explicit CShards(th_policy policy = {"hash", nullptr, nullptr},
                     ShardPolicy same = tensorhash::hash_policy())
        : twin(tensorhash::Capacity{0}, {Dtype::Int64, {}}, {{Dtype::Float32, {}}}, cpus(2),
               std::move(same)) {
        th_element const value{12, 0, nullptr};
        char const* const devices[] = {"cpu:0", "cpu:1"};
        EXPECT_EQ(th_sharded_create(0, {5, 0, nullptr}, &value, 1, devices, 2, policy, &map), TH_OK)
            << th_last_error();
    }
    ~CShards() { th_sharded_destroy(map); }
    CShards(CShards const&) = delete;
    CShards& operator=(CShards const&) = delete;

    th_sharded* map = nullptr;
    ShardedHashMap twin;
};

struct CallRows {
    explicit CallRows(std::uint64_t seed, std::size_t rows = 500)
        : keys(make_keys({Dtype::Int64, {}}, random_ids(rows, 300, seed))),
          values(make_finite_values({Dtype::Float32, {}}, rows, seed)), column{values.data()},
          indices(rows, -7), mask(rows, 9) {}

    std::int64_t rows() const { return static_cast<std::int64_t>(mask.size()); }
    void expect(ShardedLocated const& want) const {
        auto const at = want.indices.as<std::int64_t>();
        EXPECT_EQ(indices, std::vector<std::int64_t>(at.begin(), at.end()));
        expect(want.mask);
    }
    void expect(Tensor const& want) const { EXPECT_EQ(mask, mask_of(want)); }

    Tensor keys;
    Tensor values;
    void const* column[1];
    std::vector<std::int64_t> indices;
    std::vector<std::uint8_t> mask;
};

struct Exported {
    std::vector<std::int64_t> keys;
    std::vector<float> values;
    std::vector<std::int64_t> indices;
    void* column[1] = {nullptr};

    static int make(void* context, std::int64_t rows, th_sharded_room* room) {
        auto& here = *static_cast<Exported*>(context);
        auto const count = static_cast<std::size_t>(rows);
        here.keys.resize(count);
        here.values.resize(count);
        here.indices.resize(count);
        here.column[0] = here.values.data();
        *room = {here.keys.data(), here.column, here.indices.data()};
        return 0;
    }
};

template <class T>
std::vector<T> vector_of(Tensor const& tensor) {
    auto const span = tensor.as<T>();
    return {span.begin(), span.end()};
}

/// Of every shard, and of the whole table (shard -1).
void expect_same_sizes(CShards const& c) {
    for (std::int32_t shard = -1; shard < 2; ++shard) {
        std::int64_t size = 0, capacity = 0;
        EXPECT_EQ(th_sharded_size(c.map, shard, &size), TH_OK);
        EXPECT_EQ(th_sharded_capacity(c.map, shard, &capacity), TH_OK);
        auto const at = static_cast<std::size_t>(shard);
        EXPECT_EQ(size, shard < 0 ? c.twin.size() : c.twin.size(at));
        EXPECT_EQ(capacity, shard < 0 ? c.twin.capacity() : c.twin.capacity(at));
    }
}

TEST(CSharded, every_operation_does_what_ShardedHashMap_does) {
    CShards c;
    th_optimizer const sgd{TH_SGD, 0.25, 0, 0, 0, 0, 0, 0, 0, 0};
    for (std::uint64_t round = 0; round < 4; ++round) {
        CallRows batch(round);
        th_reduce const how = round % 2 == 0 ? TH_SUM : TH_LAST;
        EXPECT_EQ(th_sharded_accumulate(c.map, batch.keys.data(), batch.rows(), batch.column, &how,
                                        batch.indices.data(), batch.mask.data()),
                  TH_OK);
        batch.expect(c.twin.accumulate(batch.keys, {batch.values}, {static_cast<Reduce>(how)}));
        CallRows other(40 + round);
        EXPECT_EQ(th_sharded_find(c.map, other.keys.data(), other.rows(), other.indices.data(),
                                  other.mask.data()),
                  TH_OK);
        other.expect(c.twin.find(other.keys));
        EXPECT_EQ(th_sharded_assign(c.map, other.keys.data(), other.rows(), other.column,
                                    other.mask.data()),
                  TH_OK);
        other.expect(c.twin.assign(other.keys, {other.values}));
        EXPECT_EQ(th_sharded_update(c.map, other.keys.data(), other.rows(), other.values.data(),
                                    &sgd, TH_SKIP, TH_ADD_UP, other.mask.data()),
                  TH_OK);
        tensorhash::UpdateOptions options;
        options.duplicates = tensorhash::DuplicateKeys::Sum;
        other.expect(
            c.twin.update(other.keys, other.values, tensorhash::Sgd{.lr = 0.25}, options).mask);
        CallRows gone(80 + round, 100);
        EXPECT_EQ(th_sharded_erase(c.map, gone.keys.data(), gone.rows(), gone.mask.data()), TH_OK);
        gone.expect(c.twin.erase(gone.keys));
        std::vector<float> got(500);
        float const missing = -1;
        EXPECT_EQ(th_sharded_get(c.map, batch.keys.data(), batch.rows(), 0, &missing, 0, got.data(),
                                 batch.mask.data()),
                  TH_OK);
        auto const want =
            c.twin.get_with_mask(batch.keys, {Tensor::from(std::vector<float>{-1}).reshape({})});
        EXPECT_EQ(got, vector_of<float>(want.values[0]));
        batch.expect(want.mask);
        EXPECT_EQ(th_sharded_validate(c.map), TH_OK);
    }
    expect_same_sizes(c);
    EXPECT_EQ(th_sharded_shrink_to_fit(c.map), TH_OK);
    EXPECT_EQ(th_sharded_validate(c.map), TH_OK);
    EXPECT_EQ(th_sharded_clear(c.map), TH_OK);
    std::int64_t size = -1;
    EXPECT_EQ(th_sharded_size(c.map, -1, &size), TH_OK);
    EXPECT_EQ(size, 0);
}

TEST(CSharded, exports_ascend_and_resume_where_they_ended) {
    CShards c;
    CallRows batch(1);
    th_reduce const last = TH_LAST;
    ASSERT_EQ(th_sharded_accumulate(c.map, batch.keys.data(), batch.rows(), batch.column, &last,
                                    nullptr, nullptr),
              TH_OK);
    c.twin.insert_or_assign(batch.keys, {batch.values});
    CallRows gone(2, 60);
    ASSERT_EQ(th_sharded_erase(c.map, gone.keys.data(), gone.rows(), nullptr), TH_OK);
    c.twin.erase(gone.keys);
    auto const items = c.twin.items();
    auto const keys = vector_of<std::int64_t>(items.keys);
    auto const indices = vector_of<std::int64_t>(c.twin.active_buf_indices());
    Exported all;
    std::int64_t next = 0;
    ASSERT_EQ(th_sharded_export(c.map, 0, kEverything, kEverything, Exported::make, &all, &next),
              TH_OK);
    EXPECT_EQ(next, -1);
    EXPECT_EQ(all.keys, keys);
    EXPECT_EQ(all.values, vector_of<float>(items.values[0]));
    EXPECT_EQ(all.indices, indices);
    for (std::int64_t const limit : {1, 7, 64, 1000}) {
        std::vector<std::int64_t> met;
        for (next = 0; next >= 0;) {
            Exported part;
            ASSERT_EQ(
                th_sharded_export(c.map, next, kEverything, limit, Exported::make, &part, &next),
                TH_OK);
            EXPECT_LE(part.keys.size(), static_cast<std::size_t>(limit));
            met.insert(met.end(), part.keys.begin(), part.keys.end());
        }
        EXPECT_EQ(met, keys);
    }
    for (std::size_t shard = 0; shard < 2; ++shard) {
        Exported one;
        auto const at = static_cast<std::int64_t>(shard);
        ASSERT_EQ(th_sharded_export(c.map, at << 32, (at + 1) << 32, kEverything, Exported::make,
                                    &one, &next),
                  TH_OK);
        EXPECT_EQ(one.keys, vector_of<std::int64_t>(c.twin.items(shard).keys));
        EXPECT_EQ(next, -1);
    }
    auto const refuse = [](void*, std::int64_t, th_sharded_room*) { return 1; };
    EXPECT_EQ(th_sharded_export(c.map, 0, kEverything, 1, refuse, nullptr, &next), TH_VALUE_ERROR);
    EXPECT_EQ(th_sharded_validate(c.map), TH_OK);  // the lock is free again
}

TEST(CSharded, replacing_keeps_only_the_new_items) {
    CShards c;
    CallRows before(1), after(2);
    th_reduce const last = TH_LAST;
    ASSERT_EQ(th_sharded_accumulate(c.map, before.keys.data(), before.rows(), before.column, &last,
                                    nullptr, nullptr),
              TH_OK);
    ASSERT_EQ(th_sharded_replace(c.map, after.keys.data(), after.rows(), after.column), TH_OK);
    c.twin.insert_or_assign(after.keys, {after.values});
    EXPECT_EQ(th_sharded_find(c.map, before.keys.data(), before.rows(), before.indices.data(),
                              before.mask.data()),
              TH_OK);
    before.expect(c.twin.find(before.keys));
    EXPECT_EQ(th_sharded_validate(c.map), TH_OK);
}

TEST(CSharded, a_custom_route_picks_the_shards) {
    struct Calls {
        int number = 0;
        bool fails = false;
    } calls;
    auto const by_sign = [](void* context, void const* keys, std::int64_t rows, std::int32_t shards,
                            std::int32_t* shard) {
        auto& here = *static_cast<Calls*>(context);
        ++here.number;
        EXPECT_EQ(shards, 2);
        for (std::int64_t row = 0; row < rows; ++row) {
            shard[row] = static_cast<std::int64_t const*>(keys)[row] < 0;
        }
        return here.fails ? 1 : 0;
    };
    CShards c({"sign", by_sign, &calls});
    EXPECT_GT(calls.number, 0);
    std::int64_t const keys[] = {4, -4, 5};
    float const values[] = {1, 2, 3};
    void const* const column[] = {values};
    std::int32_t shard[3];
    EXPECT_EQ(th_sharded_shard_of(c.map, keys, 3, shard), TH_OK);
    EXPECT_EQ(std::vector<std::int32_t>(shard, shard + 3), (std::vector<std::int32_t>{0, 1, 0}));
    EXPECT_EQ(th_sharded_insert_into(c.map, 0, keys, 3, column, nullptr, nullptr), TH_VALUE_ERROR);
    EXPECT_NE(std::string(th_last_error()).find("row 1 belongs to cpu:1"), std::string::npos);
    EXPECT_EQ(th_sharded_insert_into(c.map, 0, keys, 1, column, nullptr, nullptr), TH_OK);
    calls.fails = true;
    EXPECT_EQ(th_sharded_activate(c.map, keys, 3, nullptr, nullptr), TH_VALUE_ERROR);
    EXPECT_NE(std::string(th_last_error()).find("policy"), std::string::npos);
    calls.fails = false;
    std::int64_t size = 0;
    EXPECT_EQ(th_sharded_size(c.map, -1, &size), TH_OK);
    EXPECT_EQ(size, 1);
    th_sharded* made = nullptr;
    char const* const devices[] = {"cpu:0"};
    EXPECT_EQ(th_sharded_create(0, {5, 0, nullptr}, nullptr, 0, devices, 1,
                                {"hash", by_sign, &calls}, &made),
              TH_VALUE_ERROR);
    EXPECT_EQ(th_sharded_create(0, {5, 0, nullptr}, nullptr, 0, devices, 1,
                                {"none", nullptr, nullptr}, &made),
              TH_VALUE_ERROR);
}

TEST(CSharded, files_load_onto_other_devices) {
    std::string const name = std::filesystem::temp_directory_path() /
                             ("tensorhash-c-sharded-" + std::to_string(getpid()));
    CShards c;
    CallRows batch(3);
    th_reduce const last = TH_LAST;
    ASSERT_EQ(th_sharded_accumulate(c.map, batch.keys.data(), batch.rows(), batch.column, &last,
                                    nullptr, nullptr),
              TH_OK);
    ASSERT_EQ(th_sharded_save(c.map, name.c_str()), TH_OK) << th_last_error();
    char const* const three[] = {"cpu:0", "cpu:1", "cpu:2"};
    for (std::int32_t const devices : {0, 3}) {
        th_sharded* loaded = nullptr;
        ASSERT_EQ(th_sharded_load(name.c_str(), three, devices, {}, &loaded), TH_OK)
            << th_last_error();
        std::int64_t size = 0, same = 0;
        EXPECT_EQ(th_sharded_size(loaded, -1, &size), TH_OK);
        EXPECT_EQ(th_sharded_size(c.map, -1, &same), TH_OK);
        EXPECT_EQ(size, same);
        EXPECT_EQ(th_sharded_size(loaded, 2, &size), devices == 0 ? TH_INDEX_ERROR : TH_OK);
        th_sharded_destroy(loaded);
    }
    std::filesystem::remove(name);
}

}  // namespace
}  // namespace th_test
