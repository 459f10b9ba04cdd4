// Coordinates on an emulated device: the public classes and functions give the CPU's results, where
// the arrays came from.
#include <optional>
#include <vector>

#include "support/emulated.hpp"
#include "support/fixtures.hpp"
#include "tensorhash/coords/kernel_map.hpp"
#include "tensorhash/coords/neighbours.hpp"
#include "tensorhash/coords/ops.hpp"
#include "tensorhash/coords/packed_hash_table.hpp"
#include "tensorhash/coords/torch_hash_table.hpp"
#include "tensorhash/coords/voxels.hpp"
#include "tensorhash/unique.hpp"

namespace th_test {
namespace {

namespace coords = tensorhash::coords;
using tensorhash::Device;
using tensorhash::DeviceError;
using tensorhash::Stream;
using tensorhash::StreamScope;

/// Rows (b, x, y, z) that repeat.
Tensor draw_rows(std::size_t rows, std::uint64_t seed, Dtype dtype = Dtype::Int32) {
    auto const ids = random_ids(rows, 400, seed);
    std::vector<std::int32_t> numbers;
    std::vector<std::int64_t> wide;
    for (std::uint64_t const id : ids) {
        for (std::uint64_t const number : {id % 2, id / 2 % 6, id / 12 % 6, id / 72}) {
            numbers.push_back(static_cast<std::int32_t>(number) - (number == id % 2 ? 0 : 3));
        }
        numbers[numbers.size() - 4] = static_cast<std::int32_t>(id % 2);
    }
    wide.assign(numbers.begin(), numbers.end());
    tensorhash::Shape const shape{static_cast<std::int64_t>(rows), 4};
    return dtype == Dtype::Int32 ? Tensor::from(numbers, shape) : Tensor::from(wide, shape);
}

bool has_coords() {
    try {
        coords::CoordTable const table({}, emu(0));
        return true;
    } catch (DeviceError const&) {
        return false;
    }
}
#define TH_NEEDS_COORDS() TH_SKIP_UNLESS_EMULATED(has_coords())

void expect_on(Device home, Tensor const& got, Tensor const& want) {
    EXPECT_EQ(got.device(), home);
    EXPECT_TRUE(same_bytes(got, want));
}

/// Every verb of a table, with arrays on `home`.
template <class Table>
void compare_tables(Table& device, Table& cpu, Device home, std::uint64_t seed) {
    Tensor const rows = draw_rows(200, seed, seed % 3 == 0 ? Dtype::Int64 : Dtype::Int32);
    device.insert(rows.to(home));
    cpu.insert(rows);
    Tensor const queries = draw_rows(150, seed + 1);
    Tensor const offsets = Tensor::from(std::vector<std::int32_t>{0, 0, 0, 1, 0, -1, 0, 0}, {2, 4});
    expect_on(home, device.search(queries.to(home)), cpu.search(queries));
    expect_on(home, device.search(queries.to(home), coords::SearchMode::WarpCoop),
              cpu.search(queries));
    expect_on(home, device.batched_search(queries.to(home), offsets.to(home)),
              cpu.batched_search(queries, offsets));
    device.expand_with_offsets(queries.to(home), offsets);
    cpu.expand_with_offsets(queries, offsets);
    expect_on(emu(0), device.vector_keys(), cpu.vector_keys());
    expect_on(emu(0), device.unique_index(), cpu.unique_index());
    EXPECT_EQ(device.num_distinct(), cpu.num_distinct());
    EXPECT_EQ(device.capacity(), cpu.capacity());
    coords::KernelMap const got =
        coords::kernel_map_from_size_hierarchical(device, queries.to(home), {3, 3, 3});
    coords::KernelMap const want =
        coords::kernel_map_from_size_hierarchical(cpu, queries, {3, 3, 3});
    expect_on(home, got.in_maps, want.in_maps);
    expect_on(home, got.out_maps, want.out_maps);
    expect_on(home, got.offsets, want.offsets);
}

TEST(DeviceCoords, tables_equal_the_cpus_with_arrays_of_either_side) {
    TH_NEEDS_COORDS();
    coords::PackedHashTable packed({}, emu(0));
    coords::PackedHashTable packed_cpu{std::nullopt};
    coords::CoordTable any({}, emu(0));
    coords::CoordTable any_cpu{std::nullopt};
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
        emulated_devices().set_seed(seed);
        Device const home = seed % 2 == 0 ? emu(0) : Device{};
        compare_tables(packed, packed_cpu, home, seed);
        compare_tables(any, any_cpu, home, seed);
    }
    EXPECT_EQ(coords::CoordTable::from_coords(draw_rows(9, 1).to(emu(1))).device(), emu(1));
}

TEST(DeviceCoords, calls_of_several_streams_act_in_order) {
    TH_NEEDS_COORDS();
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        emulated_devices().set_seed(seed);
        coords::CoordTable device({}, emu(0));
        coords::CoordTable cpu{std::nullopt};
        for (std::uint64_t batch = 0; batch < 3; ++batch) {
            StreamScope const scope(Stream{emu(0), emulated_devices().make_stream(0)});
            compare_tables(device, cpu, emu(0), batch);
        }
    }
}

TEST(DeviceCoords, kernel_maps_are_made_where_the_rows_are) {
    TH_NEEDS_COORDS();
    Tensor const rows = draw_rows(150, 3);
    coords::KernelMapOptions options;
    options.duplicates = coords::Duplicates::First;
    for (coords::Strategy const strategy :
         {coords::Strategy::Fastest, coords::Strategy::Flat, coords::Strategy::Hierarchical}) {
        options.strategy = strategy;
        auto const make = [&](Tensor const& at) {
            return coords::generate_kernel_map(at, at, {1, 1, 1}, {{3, 3, 3}}, options);
        };
        coords::KernelMap const got = make(rows.to(emu(0)));
        coords::KernelMap const want = make(rows);
        expect_on(emu(0), got.in_maps, want.in_maps);
        expect_on(emu(0), got.out_maps, want.out_maps);
        expect_on(emu(0), got.offsets, want.offsets);
    }
    EXPECT_THROW((void)coords::generate_kernel_map(rows, rows.to(emu(0)), {1, 1, 1}, {{3, 3, 3}}),
                 DeviceError);
    Tensor const list = Tensor::from(std::vector<std::int32_t>{0, 1, 0, 0, 0, 0, 2, 0}, {2, 4});
    auto const from_list = [&](Tensor const& at, Tensor const& offsets) {
        return coords::kernel_map_from_offsets(at, at, {1, 1, 1}, offsets,
                                               coords::Duplicates::First);
    };
    expect_on(emu(0), from_list(rows.to(emu(0)), list.to(emu(0))).in_maps,
              from_list(rows, list).in_maps);
}

TEST(DeviceCoords, rows_are_expanded_and_divided_where_they_are) {
    TH_NEEDS_COORDS();
    Tensor const rows = draw_rows(120, 5);
    Tensor const offsets = Tensor::from(std::vector<std::int64_t>{1, 0, 0, 0, -1, 0}, {2, 3});
    auto const expanded = coords::expand_coords(rows.to(emu(0)), offsets.to(emu(0)), 1, {});
    auto const wanted = coords::expand_coords(rows, offsets, 1, {});
    expect_on(emu(0), expanded.coords, wanted.coords);
    expect_on(emu(0), expanded.offsets, wanted.offsets);
    expect_on(emu(0), coords::stride_coords(rows.to(emu(0)), {2, 2, 2}, {}).coords,
              coords::stride_coords(rows, {2, 2, 2}, {}).coords);
}

TEST(DeviceCoords, vectors_are_found_where_the_table_is) {
    TH_NEEDS_COORDS();
    Tensor const rows = draw_rows(300, 5);
    Tensor const queries = draw_rows(200, 6, Dtype::Int64);
    auto const cpu = coords::TorchHashTable::from_keys(rows);
    for (Device const home : {emu(0), Device{}}) {
        auto device = coords::TorchHashTable::from_keys(rows.to(home), {}, emu(0));
        EXPECT_EQ(device.device(), emu(0));
        expect_on(home, device.search(queries.to(home)), cpu.search(queries));
        expect_on(emu(0), device.vector_keys(), cpu.vector_keys());
        expect_on(emu(0), device.unique_index(), cpu.unique_index());
        EXPECT_EQ(device.table_kvs().device(), emu(0));
        EXPECT_EQ(device.num_distinct(), cpu.num_distinct());
        EXPECT_EQ(device.capacity(), cpu.capacity());
        EXPECT_NE(message_of<DeviceError>([&] { (void)device.search(queries.to(emu(1))); }), "");
    }
}

TEST(DeviceCoords, voxels_and_neighbours_are_found_where_the_points_are) {
    TH_NEEDS_COORDS();
    Tensor const rows = draw_rows(150, 8);
    std::vector<double> numbers;
    for (std::int32_t const number : rows.as<std::int32_t>()) {
        numbers.push_back(0.3 * number);
    }
    Tensor const points = Tensor::from(numbers, {150, 4});
    std::vector<double> const size(4, 0.7);
    std::vector<double> const origin(4, 0.1);
    Tensor const want = coords::voxel_coords(points, size, origin, {}, Dtype::Int32);
    Tensor const there = points.to(emu(0));
    expect_on(emu(0), coords::voxel_coords(there, size, origin, {}, Dtype::Int32), want);
    auto const found = tensorhash::unique(want);
    std::int64_t const voxels = found.rows.shape()[0];
    // The voxel of each row may be in host memory.
    expect_on(emu(0),
              coords::reduce_voxels(there, found.inverse, voxels, coords::VoxelReduce::Mean),
              coords::reduce_voxels(points, found.inverse, voxels, coords::VoxelReduce::Mean));
    expect_on(emu(0), coords::nearest_to_centers(there, size, origin, found.inverse, voxels),
              coords::nearest_to_centers(points, size, origin, found.inverse, voxels));
    expect_on(emu(0), coords::nearest_to_centroids(there, found.inverse.to(emu(0)), voxels),
              coords::nearest_to_centroids(points, found.inverse, voxels));
    expect_on(emu(0), coords::mode_rows(found.inverse.to(emu(0)), {}, found.inverse, voxels),
              coords::mode_rows(found.inverse, {}, found.inverse, voxels));
    coords::Neighbors const got = coords::radius_search({there}, {points}, 0.5);
    coords::Neighbors const wanted = coords::radius_search({points}, {points}, 0.5);
    expect_on(emu(0), got.offsets, wanted.offsets);
    expect_on(emu(0), got.indices, wanted.indices);
    expect_on(emu(0), got.distances, wanted.distances);
}

TEST(DeviceCoords, what_runs_on_the_cpu_only_says_so) {
    TH_NEEDS_COORDS();
    Tensor const points = Tensor::from(std::vector<double>{1, 2, 3, 4}, {2, 2}).to(emu(0));
    std::string const text =
        message_of<DeviceError>([&] { (void)coords::knn_search({points}, {points}, 1); });
    EXPECT_TRUE(text.starts_with("points: expected memory of the CPU")) << text;
    EXPECT_NE(text.find(".cpu()"), std::string::npos) << text;
}

}  // namespace
}  // namespace th_test
