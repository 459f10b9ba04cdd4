// A grid that runs out of memory while it integrates stays as it was.
#include <gtest/gtest.h>

#include <new>
#include <vector>

#include "support/address_space.hpp"
#include "support/fixtures.hpp"
#include "tensorhash/geometry/voxel_block_grid.hpp"
#include "tensorhash/memory.hpp"

namespace th_test {
namespace {

using tensorhash::Capacity;
using tensorhash::Dtype;
using tensorhash::HashMap;
using tensorhash::Tensor;
namespace geometry = tensorhash::geometry;

/// A sheet of points 2 m in front of the origin, 5 cm apart.
Tensor sheet(std::int64_t side) {
    std::vector<float> numbers;
    for (std::int64_t i = 0; i < side * side; ++i) {
        numbers.push_back(0.05f * static_cast<float>(i % side - side / 2));
        numbers.push_back(0.05f * static_cast<float>(i / side - side / 2));
        numbers.push_back(2.0f);
    }
    return Tensor::from(numbers, {side * side, 3});
}

/// The sum of all weights: the number of observations.
double observations(HashMap const& map) {
    Tensor const weights = map.value_tensor(1);
    double sum = 0;
    for (float const weight : weights.as<float>()) sum += static_cast<double>(weight);
    return sum;
}

class GridOutOfMemory : public testing::Test {
protected:
    void SetUp() override {
#if TH_TEST_SANITIZED
        GTEST_SKIP() << "sanitizers need address space of their own";
#endif
    }

    /// Calls `change` with more and more memory until it succeeds. Returns how often it failed.
    template <class Change>
    int fail_until_it_fits(Change&& change) {
        std::int64_t const blocks = map.size();
        std::int64_t const capacity = map.capacity();
        double const before = observations(map);
        for (int failures = 0;; ++failures) {
            tensorhash::release_memory();
            try {
                AddressSpaceLimit const limit(static_cast<std::size_t>(failures) << 20);
                change();
                return failures;
            } catch (std::bad_alloc const&) {
            }
            EXPECT_EQ(map.size(), blocks);
            EXPECT_EQ(map.capacity(), capacity);
            EXPECT_EQ(observations(map), before);
        }
    }

    Threads one_thread{1};
    HashMap map{Capacity{0},
                {Dtype::Int32, {3}},
                {{Dtype::Float32, {16, 16, 16, 1}}, {Dtype::Float32, {16, 16, 16, 1}}}};
    geometry::VoxelBlockGrid grid{map, {0.02, 16}, 0, 1};
};

TEST_F(GridOutOfMemory, a_scan_is_added_whole_or_not_at_all) {
    geometry::integrate(grid, geometry::Scan{sheet(20)}, 4);
    geometry::Scan const scan{sheet(150)};
    EXPECT_GT(fail_until_it_fits([&] { geometry::integrate(grid, scan, 4); }), 3);
    EXPECT_GT(map.size(), 50);
    map.validate();
}

TEST_F(GridOutOfMemory, an_image_is_added_whole_or_not_at_all) {
    std::vector<float> const depth(std::size_t{320} * 240, 2.0f);
    std::vector<double> const intrinsic{260, 0, 160, 0, 260, 120, 0, 0, 1};
    std::vector<double> const extrinsic{1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1};
    geometry::Camera const camera{Tensor::from(intrinsic, {3, 3}), Tensor::from(extrinsic, {4, 4})};
    geometry::DepthRange const range{1.0, 3.0, 4.0};
    geometry::Frame const frame{Tensor::from(depth, {240, 320}), camera};
    Tensor const blocks = geometry::touched_blocks(grid.scale, frame.depth, camera, range);
    geometry::integrate(grid, geometry::Scan{sheet(20)}, 4);
    EXPECT_GT(fail_until_it_fits([&] { geometry::integrate(grid, blocks, frame, range); }), 1);
    EXPECT_GT(map.size(), 20);
    map.validate();
}

}  // namespace
}  // namespace th_test
