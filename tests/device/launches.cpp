// How many launches a call has: the numbers in the tables of docs/cuda.md. A scan is one launch
// here; a sort is none.
#include "device/coord_twins.hpp"
// The device's headers come first: they choose the form of the steps.
#include <array>
#include <memory>
#include <optional>

namespace th_test {
namespace {

namespace backend = tensorhash::backend;
using tensorhash::coords::SearchMode;
using tensorhash::coords::Strategy;
using tensorhash::coords::VoxelReduce;
using tensorhash::device::Core;

class Launches : public testing::Test {
protected:
    template <class Call>
    std::uint64_t of(Call const& call) {
        std::uint64_t const before = twins.queue.launches;
        call();
        return twins.queue.launches - before;
    }
    TwinTensor numbers(std::int64_t rows, std::int64_t columns) {
        std::vector<double> values;
        for (std::int64_t i = 0; i < rows * columns; ++i) {
            values.push_back(0.1 * static_cast<double>(i % 17));
        }
        return twins.tensor(values, columns == 0 ? Shape{rows} : Shape{rows, columns},
                            Dtype::Float64);
    }
    TwinTensor integers(std::int64_t rows, std::int64_t below) {
        std::vector<std::int64_t> values;
        for (std::int64_t i = 0; i < rows; ++i) values.push_back(i % below);
        return twins.tensor(values, {rows}, Dtype::Int64);
    }
    TwinRows coords(std::int64_t first, std::int64_t rows, bool wide) {
        std::vector<std::int64_t> values;
        for (std::int64_t i = first; i < first + rows; ++i)
            values.insert(values.end(), {0, i, i / 3, 1});
        return twins.rows(values, 4, wide);
    }

    CoordTwins twins{1};
};

TEST_F(Launches, of_an_insert_with_growth) {
    std::uint64_t least = ~0ull;
    std::uint64_t most = 0;
    for (std::uint64_t const rows : {20u, 100u, 3000u, 9000u}) {
        TestQueue queue({.seed = rows});
        Core<TestQueue> core(queue, {8, 0}, 10, 7);
        OnDevice<std::uint32_t> const indices(queue, rows);
        OnDevice<unsigned char> const mask(queue, rows);
        std::vector<std::uint64_t> keys(rows);
        for (std::uint64_t i = 0; i < rows; ++i) keys[i] = i;
        OnDevice<unsigned char> const given(queue, keys.data(), rows * 8);
        std::uint64_t const before = queue.launches;
        core.insert(given.data(), static_cast<std::uint32_t>(rows), {indices.data(), mask.data()});
        least = std::min(least, queue.launches - before);
        most = std::max(most, queue.launches - before);
    }
    EXPECT_EQ(least, 9u);
    EXPECT_EQ(most, 9u);
}

TEST_F(Launches, of_a_store_of_coordinates) {
    auto const store = twins.device.make_store({}, 4);
    TwinRows const few = coords(0, 10, false);
    TwinRows const more = coords(10, 5, false);
    TwinRows const wide = coords(15, 5, true);
    TwinRows const many = coords(20, 5000, false);
    EXPECT_EQ(of([&] { store->insert(few.device, "coords"); }), 3u);
    EXPECT_EQ(of([&] { store->insert(more.device, "coords"); }), 1u);
    EXPECT_EQ(of([&] { store->insert(wide.device, "coords"); }), 4u);
    EXPECT_EQ(of([&] { store->insert(many.device, "coords"); }), 3u);
    EXPECT_EQ(of([&] { (void)store->search(few.device, SearchMode::Linear); }), 1u);
    EXPECT_EQ(of([&] { (void)store->search(wide.device, SearchMode::WarpCoop); }), 1u);
}

TEST_F(Launches, of_a_table_of_vectors) {
    auto const table = twins.device.make_vectors(std::nullopt);
    TwinRows const narrow = coords(0, 10, false);
    TwinRows const wide = coords(10, 10, true);
    table->set_columns(4);
    EXPECT_EQ(of([&] { table->insert(narrow.device); }), 1u);
    EXPECT_EQ(of([&] { table->insert(wide.device); }), 2u);
    EXPECT_EQ(of([&] { (void)table->search(narrow.device); }), 1u);
    EXPECT_EQ(of([&] { (void)table->search(wide.device); }), 2u);
}

TEST_F(Launches, of_voxels) {
    TwinTensor const points = numbers(60, 3);
    TwinTensor const batch = integers(60, 2);
    TwinTensor const voxel = integers(60, 7);
    backend::VoxelizeRequest request{points.device, {0.5, 0.5, 0.5}, {0, 0, 0}, {}, Dtype::Int32};
    EXPECT_EQ(of([&] { (void)twins.device.voxelize(request); }), 2u);
    EXPECT_EQ(of([&] { (void)twins.device.rows_near_centers(request, voxel.device, 7); }), 6u);
    request.batch = batch.device;
    EXPECT_EQ(of([&] { (void)twins.device.voxelize(request); }), 3u);
    auto const reduce = [&](VoxelReduce how) {
        return of([&] { (void)twins.device.reduce_voxels(points.device, voxel.device, 7, how); });
    };
    EXPECT_EQ(reduce(VoxelReduce::Mean), 4u);
    EXPECT_EQ(reduce(VoxelReduce::First), 5u);
    EXPECT_EQ(of([&] { (void)twins.device.rows_near_centroids(points.device, voxel.device, 7); }),
              6u);
    EXPECT_EQ(of([&] { (void)twins.device.rows_of_modes(batch.device, {}, voxel.device, 7); }), 9u);
}

TEST_F(Launches, of_a_radius_search) {
    TwinTensor const points = numbers(60, 3);
    TwinTensor const batch = integers(60, 2);
    backend::RadiusRequest request{{points.device, {}}, {points.device, {}}, 0.3, {}};
    EXPECT_EQ(of([&] { (void)twins.device.radius(request); }), 16u);
    request.points.batch = batch.device;
    request.queries.batch = batch.device;
    EXPECT_EQ(of([&] { (void)twins.device.radius(request); }), 26u);
}

TEST_F(Launches, of_a_kernel_map) {
    TwinRows const in = coords(0, 40, false);
    TwinRows const out = coords(5, 40, false);
    backend::KernelMapRequest request;
    request.in = in.device;
    request.out = out.device;
    request.axes = 3;
    request.stride = {1, 1, 1};
    request.size = {1, 1, 3};
    request.dilation = {1, 1, 1};
    request.offsets = {0, 0, -1, 0, 0, 0, 0, 0, 1};
    request.all = request.groups = 3;
    request.odd = request.centered = request.unstrided = true;
    request.strategy = Strategy::Flat;
    EXPECT_EQ(of([&] { (void)twins.device.kernel_map(request); }), 8u);
    request.strategy = Strategy::Hierarchical;
    EXPECT_EQ(of([&] { (void)twins.device.kernel_map(request); }), 13u);
}

}  // namespace
}  // namespace th_test
