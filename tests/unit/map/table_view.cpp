// HashMap::view(): lookups one by one in host code, and what it refuses.
#include "tensorhash/device_view.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "support/fixtures.hpp"
#include "tensorhash/error.hpp"
#include "tensorhash/hash_map.hpp"

namespace th_test {
namespace {

using tensorhash::Capacity;
using tensorhash::Dtype;
using tensorhash::HashMap;
using tensorhash::HashSet;
using tensorhash::Tensor;
using tensorhash::TypeError;

struct Voxel {
    std::int32_t x, y, z;
};

TEST(TableView, finds_what_find_finds) {
    HashSet set(Capacity{4}, {Dtype::Int64, {}});
    std::vector<std::int64_t> keys;
    for (std::int64_t i = 0; i < 3000; ++i) keys.push_back(i * i * 77 - 5);
    set.insert(Tensor::from(keys));
    set.erase(Tensor::from(std::vector<std::int64_t>(keys.begin(), keys.begin() + 500)));
    auto const view = set.view<std::int64_t>();
    static_assert(std::is_trivially_copyable_v<decltype(view)>);
    Tensor const found = set.find(Tensor::from(keys)).indices;
    for (std::size_t i = 0; i < keys.size(); ++i) {
        ASSERT_EQ(view.find(keys[i]), found.as<std::int32_t>()[i]) << i;
        ASSERT_EQ(view.contains(keys[i]), i >= 500);
    }
    EXPECT_EQ(view.find(1), -1);
}

TEST(TableView, takes_structs_arrays_and_floats) {
    HashSet voxels(Capacity{4}, {Dtype::Int32, {3}});
    voxels.insert(Tensor::from(std::vector<std::int32_t>{1, 2, 3, 4, 5, 6}, {2, 3}));
    EXPECT_EQ(voxels.view<Voxel>().find({4, 5, 6}), 1);
    EXPECT_EQ((voxels.view<std::array<std::int32_t, 3>>().find({1, 2, 3})), 0);
    EXPECT_FALSE(voxels.view<Voxel>().contains({1, 2, 4}));
    HashSet floats(Capacity{4}, {Dtype::Float32, {}});
    floats.insert(Tensor::from(std::vector<float>{0.0f, NAN}));
    EXPECT_EQ(floats.view<float>().find(-0.0f), 0);
    EXPECT_EQ(floats.view<float>().find(-NAN), 1);
}

TEST(TableView, refuses_other_types_of_keys) {
    HashMap const map(Capacity{4}, {Dtype::Int32, {3}}, {});
    EXPECT_EQ(message_of<TypeError>([&] { (void)map.view<std::int64_t>(); }),
              "view: expected a key type of 12 bytes of int32, got one of 8 bytes of int64");
    EXPECT_EQ(message_of<TypeError>([&] { (void)map.view<std::array<float, 3>>(); }),
              "view: expected a key type of 12 bytes of int32, got one of 12 bytes of float32");
    HashMap const floats(Capacity{4}, {Dtype::Float32, {3}}, {});
    EXPECT_EQ(message_of<TypeError>([&] { (void)floats.view<Voxel>(); }),
              "view: expected a key type of 12 bytes of float32, got one of 12 bytes");
}

TEST(TableView, of_an_empty_table_finds_nothing) {
    EXPECT_EQ(HashSet(Capacity{0}, {Dtype::UInt8, {}}).view<std::uint8_t>().find(0), -1);
}

}  // namespace
}  // namespace th_test
