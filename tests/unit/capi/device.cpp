// Calls of the C interface on an emulated device: arrays that the host cannot touch, on a stream of
// the caller, beside a map on the CPU.
#include <cstdint>
#include <string>
#include <vector>

#include "support/emulated.hpp"
#include "support/fixtures.hpp"
#include "tensorhash/c.h"
#include "tensorhash/hash_map.hpp"
#include "tensorhash/sharded/sharded_map.hpp"

namespace th_test {
namespace {

using namespace tensorhash;

/// A map on emu:0 of int64 keys to float32 x 2, used through C calls only, and its twin on the CPU.
class DeviceCalls : public testing::Test {
protected:
    DeviceCalls() : device(emu(0)), twin(Capacity{0}, key, {value}) {}
    void SetUp() override {
        TH_SKIP_UNLESS_EMULATED(tables_on_device());
        static std::int64_t const two[] = {2};
        th_element const column{12, 1, two};
        ASSERT_EQ(th_device_begin("emu:0", emulated_devices().make_stream(0), &scope), TH_OK)
            << th_last_error();
        ASSERT_EQ(th_map_create_on("emu:0", 0, {5, 0, nullptr}, &column, 1, &map), TH_OK)
            << th_last_error();
    }
    void TearDown() override {
        th_map_destroy(map);
        th_device_end(scope);
    }
    bool tables_on_device() const {
        try {
            HashMap(Capacity{0}, key, {value}, device);
            return true;
        } catch (Error const&) {
            return false;
        }
    }
    Tensor room(Shape shape, Dtype dtype) const {
        return Tensor::empty(std::move(shape), dtype, device);
    }
    static std::string read(Tensor const& tensor) { return bytes_of(tensor.to({})); }

    Element key{Dtype::Int64, {}};
    Element value{Dtype::Float32, {2}};
    Device device;
    HashMap twin;
    th_device_scope* scope = nullptr;
    th_map* map = nullptr;
};

TEST_F(DeviceCalls, take_and_give_arrays_of_the_device) {
    for (std::uint64_t round = 0; round < 3; ++round) {
        Tensor const keys = make_keys(key, random_ids(200, 300, round));
        Tensor const rows = make_finite_values(value, 200, round);
        Tensor const device_keys = keys.to(device), device_rows = rows.to(device);
        Tensor indices = room({200}, Dtype::Int32), mask = room({200}, Dtype::Bool);
        Tensor values = room({200, 2}, Dtype::Float32);
        void const* const columns[] = {device_rows.data()};
        th_reduce const sum = TH_SUM;
        ASSERT_EQ(th_map_accumulate(map, device_keys.data(), 200, columns, &sum,
                                    static_cast<std::int32_t*>(indices.data()),
                                    static_cast<std::uint8_t*>(mask.data())),
                  TH_OK)
            << th_last_error();
        Located const want = twin.accumulate(keys, {rows}, {Reduce::Sum});
        EXPECT_EQ(read(indices), bytes_of(want.indices));
        EXPECT_EQ(read(mask), bytes_of(want.mask));

        Tensor const asked = make_keys(key, random_ids(200, 400, round + 9));
        Tensor const device_asked = asked.to(device);
        Tensor const missing = make_finite_values(value, 200, round + 9);
        Tensor const device_missing = missing.to(device);
        ASSERT_EQ(th_map_get(map, device_asked.data(), 200, 0, device_missing.data(), 1,
                             values.data(), static_cast<std::uint8_t*>(mask.data())),
                  TH_OK)
            << th_last_error();
        EXPECT_EQ(read(values), bytes_of(twin.get(asked, {missing})[0]));
        EXPECT_EQ(read(mask), bytes_of(twin.contains(asked)));

        th_optimizer const sgd{TH_SGD, 0.5, 0, 0, 0, 0, 0, 0, 0, 0};
        ASSERT_EQ(th_map_update(map, device_asked.data(), 200, device_missing.data(), &sgd, TH_SKIP,
                                TH_IN_ORDER, static_cast<std::uint8_t*>(mask.data())),
                  TH_OK)
            << th_last_error();
        twin.update(asked, missing, Sgd{0.5});
        ASSERT_EQ(th_map_erase(map, device_asked.data(), 20, nullptr), TH_OK) << th_last_error();
        twin.erase(Tensor::borrow(asked.data(), {20}, Dtype::Int64));
        std::int64_t size = -1, listed = -1;
        ASSERT_EQ(th_map_size(map, &size), TH_OK);
        ASSERT_EQ(size, twin.size());
        Tensor all_keys = room({size}, Dtype::Int64), all = room({size, 2}, Dtype::Float32);
        void* parts[] = {all.data()};
        ASSERT_EQ(th_map_items(map, size, all_keys.data(), parts, &listed), TH_OK)
            << th_last_error();
        EXPECT_EQ(read(all_keys), bytes_of(twin.items().keys));
        EXPECT_EQ(read(all), bytes_of(twin.items().values[0]));
        EXPECT_EQ(th_map_validate(map), TH_OK);
    }
}

TEST_F(DeviceCalls, end_with_their_scope) {
    Tensor const keys = make_keys(key, random_ids(50, 60, 1));
    Tensor const rows = make_finite_values(value, 50, 1);
    void const* const columns[] = {rows.data()};
    th_device_end(scope);
    scope = nullptr;
    std::vector<std::int32_t> indices(50);
    // Host arrays are copied to the map's device, and their results come back.
    ASSERT_EQ(th_map_insert(map, keys.data(), 50, columns, indices.data(), nullptr), TH_OK)
        << th_last_error();
    EXPECT_EQ(indices, to_vector<std::int32_t>(twin.insert(keys, {rows}).indices));
}

TEST(DeviceScopes, name_what_is_missing) {
    th_device_scope* scope = nullptr;
    EXPECT_EQ(th_device_begin("cuda:99", 1, &scope), TH_DEVICE_ERROR);
    EXPECT_EQ(std::string(th_last_error()).rfind("device:", 0), 0u) << th_last_error();
    EXPECT_EQ(th_device_begin("tape:0", 1, &scope), TH_VALUE_ERROR);
    EXPECT_EQ(th_device_begin(nullptr, 1, &scope), TH_VALUE_ERROR);
    EXPECT_EQ(scope, nullptr);
    th_device_end(nullptr);
    th_map* map = nullptr;
    EXPECT_EQ(th_map_create_on("cuda:99", 0, {5, 0, nullptr}, nullptr, 0, &map), TH_DEVICE_ERROR);
    char const* const devices[] = {"cuda:99"};
    th_sharded* shards = nullptr;
    EXPECT_EQ(th_sharded_create(0, {5, 0, nullptr}, nullptr, 0, devices, 1,
                                {"hash", nullptr, nullptr}, &shards),
              TH_DEVICE_ERROR);
    EXPECT_EQ(std::string(th_last_error()).rfind("devices:", 0), 0u) << th_last_error();
}

}  // namespace
}  // namespace th_test
