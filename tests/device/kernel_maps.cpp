// Kernel maps of the device against the CPU's, for every kind of request.
#include "device/coord_twins.hpp"
// The device's headers come first: they choose the form of the steps.
#include <algorithm>
#include <memory>
#include <utility>

namespace th_test {
namespace {

namespace backend = tensorhash::backend;
using backend::KernelMapPairs;
using backend::KernelMapRequest;
using tensorhash::coords::Duplicates;
using tensorhash::coords::Strategy;

struct MapCase {
    char const* name;
    std::vector<std::int64_t> size{};  // of the kernel; empty: a list of offsets
    std::int64_t stride = 1;
    std::int64_t dilation = 1;
    std::int64_t center = -1;  // of every axis; -1: the middle
    Strategy strategy = Strategy::Flat;
    Duplicates duplicates = Duplicates::First;
    bool same = false;      // in and out are one array
    bool copied = false;    // out is a copy of in
    bool changed = false;   // but for its last number
    bool distinct = false;  // no coordinate is repeated
    bool skip = false;      // the mirrored half
    bool far = false;       // some coordinates have no packed key
    bool beyond = false;    // some numbers do not fit int32
    std::uint64_t limit = tensorhash::device::Coords<TestQueue>::kMapLimit;
    std::int64_t coarse = 4;
};

std::ostream& operator<<(std::ostream& out, MapCase const& map) { return out << map.name; }

/// The request without its rows.
KernelMapRequest make_request(MapCase const& map, Random& random) {
    KernelMapRequest request;
    request.axes = map.size.empty() ? 3 : map.size.size();
    request.stride = Shape(request.axes, map.stride);
    request.unstrided = map.stride == 1;
    request.odd = true;
    request.duplicates = map.duplicates;
    request.strategy = map.strategy;
    request.coarse_stride = map.coarse;
    if (map.size.empty()) {
        request.all = 9;
        for (std::size_t i = 0; i < request.all * request.axes; ++i) {
            request.offsets.push_back(static_cast<std::int32_t>(between(random, -3, 3)));
        }
        request.offsets.back() = 0x7fffffff;
    } else {
        request.size = Shape(map.size.begin(), map.size.end());
        request.dilation = Shape(request.axes, map.dilation);
        request.all = 1;
        request.centered = map.center < 0;
        for (std::int64_t const extent : map.size) {
            request.all *= static_cast<std::size_t>(extent);
            request.odd = request.odd && extent % 2 == 1;
            request.centered = request.centered && extent % 2 == 1;
        }
        for (std::size_t k = 0; k < request.all; ++k) {
            std::vector<std::int32_t> offset(request.axes);
            auto rest = static_cast<std::int64_t>(k);
            for (std::size_t axis = request.axes; axis-- > 0; rest /= map.size[axis]) {
                std::int64_t const middle = map.center < 0 ? map.size[axis] / 2 : map.center;
                offset[axis] =
                    static_cast<std::int32_t>((rest % map.size[axis] - middle) * map.dilation);
            }
            request.offsets.insert(request.offsets.end(), offset.begin(), offset.end());
        }
    }
    request.groups = map.skip ? request.all / 2 : request.all;
    return request;
}

std::vector<std::int64_t> draw(MapCase const& map, Random& random, std::size_t rows,
                               std::size_t axes) {
    std::vector<std::int64_t> numbers;
    std::int64_t const reach = axes > 3 ? 1 : 3;
    for (std::size_t row = 0; row < rows; ++row) {
        numbers.push_back(between(random, 0, 1));
        for (std::size_t axis = 0; axis < axes; ++axis) {
            numbers.push_back(between(random, -reach, reach));
        }
        if (map.distinct) {
            numbers.back() = static_cast<std::int64_t>(row) - 40;
        }
        if (map.far && random.one_in(10)) {
            numbers.back() = random.one_in(2) ? 0x7fffffff : -0x7fffffff - 1;
        }
        if (map.beyond && random.one_in(30)) {
            numbers.back() = std::int64_t{1} << 40;
        }
    }
    return numbers;
}

void expect_same_map(CoordTwins& twins, KernelMapPairs const& got, KernelMapPairs const& wanted) {
    twins.expect_same(got.in_maps, wanted.in_maps, "in_maps");
    twins.expect_same(got.out_maps, wanted.out_maps, "out_maps");
    twins.expect_same(got.offsets, wanted.offsets, "offsets");
    EXPECT_EQ(got.equal, wanted.equal);
    EXPECT_EQ(got.repeated, wanted.repeated);
    if (got.strategy == wanted.strategy) {
        EXPECT_EQ(got.coarse_probes, wanted.coarse_probes);
        EXPECT_EQ(got.fine_probes, wanted.fine_probes);
    }
}

/// The table of the CPU's pairs.
Tensor table_of(KernelMapPairs const& pairs, std::size_t out_rows) {
    auto const bounds = pairs.offsets.as<std::int64_t>();
    std::vector<std::int32_t> table((bounds.size() - 1) * out_rows, -1);
    for (std::size_t k = 0; k + 1 < bounds.size(); ++k) {
        for (auto at = static_cast<std::size_t>(bounds[k]);
             at < static_cast<std::size_t>(bounds[k + 1]); ++at) {
            auto const row = static_cast<std::size_t>(pairs.out_maps.as<std::int32_t>()[at]);
            table[k * out_rows + row] = pairs.in_maps.as<std::int32_t>()[at];
        }
    }
    return Tensor::from(
        table, {static_cast<std::int64_t>(bounds.size()) - 1, static_cast<std::int64_t>(out_rows)});
}

/// The rows of which there are none.
enum class Empty : std::uint8_t { Neither, In, Out };

/// The same request on both back ends.
void compare_maps(MapCase const& map, std::uint64_t seed, Empty empty = Empty::Neither) {
    Random random(seed);
    CoordTwins twins(seed, map.limit);
    KernelMapRequest request = make_request(map, random);
    auto const columns = static_cast<std::uint32_t>(request.axes) + 1;
    std::size_t const in_count = empty == Empty::In ? 0 : 60 + random.below(60);
    auto const in = draw(map, random, in_count, request.axes);
    auto out = map.copied ? in : draw(map, random, empty == Empty::Out ? 0 : 50, request.axes);
    if (map.changed && !out.empty()) {
        ++out.back();
    }
    TwinRows const in_rows = twins.rows(in, columns, map.beyond || seed % 3 == 0);
    TwinRows const out_rows =
        map.same ? in_rows : twins.rows(out, columns, map.beyond || seed % 3 == 1);
    KernelMapRequest on_device = request;
    on_device.in = in_rows.device;
    on_device.out = out_rows.device;
    on_device.table = seed % 2 == 0;
    request.in = in_rows.cpu;
    request.out = out_rows.cpu;
    KernelMapPairs got;
    KernelMapPairs wanted;
    twins.queue.read_backs = 0;
    std::string const error = error_of([&] { got = twins.device.kernel_map(on_device); });
    EXPECT_EQ(error, error_of([&] { wanted = twins.cpu.kernel_map(request); }));
    if (error.empty()) {
        EXPECT_EQ(twins.queue.read_backs, 1u);
        expect_same_map(twins, got, wanted);
        auto const bounds = got.bounds->as<std::int64_t>();
        auto const ends = wanted.offsets.as<std::int64_t>();
        EXPECT_TRUE(std::equal(bounds.begin(), bounds.end(), ends.begin(), ends.end()));
        EXPECT_EQ(got.table.has_value(), on_device.table);
        if (got.table) {
            twins.expect_same(*got.table, table_of(wanted, request.out.rows), "table");
        }
    }
}

class DeviceKernelMap : public testing::TestWithParam<MapCase> {};

TEST_P(DeviceKernelMap, has_the_pairs_of_the_cpu) {
    for (std::uint64_t seed = 1; seed <= seeds(3); ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        compare_maps(GetParam(), seed);
    }
    compare_maps(GetParam(), 1, Empty::In);
    compare_maps(GetParam(), 2, Empty::Out);
}

INSTANTIATE_TEST_SUITE_P(
    Requests, DeviceKernelMap,
    testing::Values(
        MapCase{.name = "Cube", .size = {3, 3, 3}},
        MapCase{.name = "OneArray", .size = {3, 3, 3}, .same = true, .distinct = true},
        MapCase{.name = "CopiedArray", .size = {3, 3, 3}, .copied = true},
        MapCase{.name = "ChangedArray", .size = {3, 3, 3}, .copied = true, .changed = true},
        MapCase{.name = "Strided", .size = {2, 3, 2}, .stride = 2},
        MapCase{.name = "Dilated", .size = {3, 3, 3}, .dilation = 2},
        MapCase{.name = "Center", .size = {3, 3, 3}, .center = 0},
        MapCase{.name = "TwoAxes", .size = {5, 5}},
        MapCase{.name = "FourAxes", .size = {3, 1, 2, 3}, .stride = 2, .dilation = 2},
        MapCase{.name = "FiveAxes", .size = {3, 1, 3, 1, 2}},
        MapCase{.name = "SixAxes", .size = {1, 3, 1, 3, 1, 3}, .far = true},
        MapCase{.name = "FarAway", .size = {3, 3, 3}, .far = true},
        MapCase{.name = "FarStrided", .size = {3, 3, 3}, .stride = 0x7fffffff, .far = true},
        MapCase{.name = "BeyondInt32", .size = {3, 3, 3}, .beyond = true},
        MapCase{.name = "Offsets", .far = true},
        MapCase{.name = "Refuse", .size = {3, 3, 3}, .duplicates = Duplicates::Refuse},
        MapCase{.name = "RefuseWide",
                .size = {1, 3, 1, 3},
                .duplicates = Duplicates::Refuse,
                .far = true},
        MapCase{.name = "SkipSymmetric",
                .size = {3, 3, 3},
                .same = true,
                .distinct = true,
                .skip = true},
        MapCase{.name = "SkipOther", .size = {3, 3, 3}, .skip = true},
        MapCase{.name = "SkipEven", .size = {2, 3, 3}, .same = true, .skip = true},
        MapCase{.name = "NothingLeft", .size = {1, 1, 1}, .same = true, .skip = true},
        MapCase{.name = "Chunks", .size = {3, 3, 3}, .limit = 1000},
        MapCase{.name = "OneOffsetAtATime", .size = {3, 3, 3}, .limit = 1},
        MapCase{.name = "Hierarchical", .size = {5, 3, 7}, .strategy = Strategy::Hierarchical},
        MapCase{.name = "HierarchicalFar",
                .size = {3, 3, 5},
                .strategy = Strategy::Hierarchical,
                .far = true},
        MapCase{.name = "HierarchicalStrided",
                .size = {5, 5, 3},
                .stride = 3,
                .strategy = Strategy::Hierarchical},
        MapCase{.name = "HierarchicalFine",
                .size = {3, 3, 5},
                .strategy = Strategy::Hierarchical,
                .coarse = 1},
        MapCase{.name = "HierarchicalChunks",
                .size = {3, 3, 3},
                .strategy = Strategy::Hierarchical,
                .limit = 1000},
        MapCase{.name = "HierarchicalWithoutRoom",
                .size = {3, 3, 3},
                .strategy = Strategy::Hierarchical,
                .limit = 100},
        MapCase{.name = "Blocks", .size = {3, 5, 3}, .strategy = Strategy::Blocks},
        MapCase{.name = "Merge", .size = {3, 3, 3}, .strategy = Strategy::Merge},
        MapCase{.name = "Fastest", .size = {3, 3, 3}, .strategy = Strategy::Fastest}),
    [](auto const& p) { return p.param.name; });

TEST(DeviceKernelMap, from_a_store_is_that_of_the_cpu) {
    for (std::uint64_t seed = 1; seed <= seeds(3); ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        MapCase const map{.name = "Store",
                          .size = {3, 5, 3},
                          .strategy = Strategy::Hierarchical,
                          .far = seed % 2 == 0,
                          .beyond = seed % 3 == 0};
        Random random(seed);
        CoordTwins twins(seed);
        auto const on_device = twins.device.make_store({}, 0);
        auto const on_cpu = twins.cpu.make_store({}, 0);
        auto const rows = draw({.name = "", .far = map.far}, random, 80, 3);
        TwinRows const in = twins.rows(rows, 4, false);
        if (seed != 1) {  // without columns, the store has no pairs
            on_device->insert(in.device, "coords");
            on_cpu->insert(in.cpu, "coords");
        }
        TwinRows const other = twins.rows(draw(map, random, 70, 3), 4, true);
        for (TwinRows const& out : {other, in}) {
            KernelMapRequest request = make_request(map, random);
            request.out_name = "query_coords";
            KernelMapRequest of_cpu = request;
            request.out = out.device;
            of_cpu.out = out.cpu;
            twins.queue.read_backs = 0;
            KernelMapPairs const got = on_device->kernel_map(request);
            EXPECT_EQ(twins.queue.read_backs, 1u);
            expect_same_map(twins, got, on_cpu->kernel_map(of_cpu));
        }
    }
}

// No machine of the tests has room for so many lookups or pairs: only their numbers are this large.
TEST(DeviceKernelMap, lookups_beyond_32_bits_have_places_of_their_own) {
    tensorhash::device::PairGrid const grid{0x7fffffff, 1000};
    std::uint64_t const threads = grid.size() / grid.offsets;
    for (std::uint32_t const offset : {0u, 1u, 999u}) {
        for (std::uint32_t const row : {0u, 1u, 0x7ffffffeu}) {
            auto const pair = grid.at(offset * threads + row);
            EXPECT_EQ(pair.offset, offset);
            EXPECT_EQ(pair.row, row);
            EXPECT_TRUE(pair.is_row);
            EXPECT_EQ(grid.place(pair), std::uint64_t{offset} * 0x7fffffff + row);
        }
        EXPECT_FALSE(grid.at(offset * threads + 0x7fffffff).is_row);
    }
}

TEST(DeviceKernelMap, pairs_beyond_32_bits_are_written_at_their_ranks) {
    constexpr std::uint64_t kBefore = (std::uint64_t{1} << 33) + 5;
    constexpr std::uint32_t kNone = tensorhash::step::kNoRow;
    tensorhash::device::PairGrid const grid{3, 2};
    std::vector<std::uint32_t> const found{5, kNone, 7, kNone, 1, 2};
    std::vector<std::uint64_t> const ranks{kBefore, kBefore + 2, kBefore + 4};
    TestQueue queue;
    OnDevice<std::uint32_t> const lookups(queue, found.data(), found.size());
    OnDevice<std::uint64_t> const counts(queue, ranks.data(), ranks.size());
    OnDevice<std::int32_t> const in(queue, 4);
    OnDevice<std::int32_t> const out(queue, 4);
    OnDevice<std::int64_t> const begins(queue, 3);
    // The array of which only this part exists.
    auto const whole = [](OnDevice<std::int32_t> const& part) {
        return reinterpret_cast<std::int32_t*>(reinterpret_cast<std::uintptr_t>(part.data()) -
                                               kBefore * sizeof(std::int32_t));
    };
    queue.launch(grid.size(), tensorhash::device::WritePairs{lookups.data(), counts.data(),
                                                             whole(in), whole(out), grid});
    EXPECT_EQ(in.read(), (std::vector<std::int32_t>{5, 7, 1, 2}));
    EXPECT_EQ(out.read(), (std::vector<std::int32_t>{0, 2, 1, 2}));
    queue.launch(
        3, tensorhash::device::WriteOffsets{counts.data(), counts.data() + 2, begins.data(), grid});
    EXPECT_EQ(begins.read<std::uint64_t>(), ranks);
}

}  // namespace
}  // namespace th_test
