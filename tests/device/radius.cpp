// Radius searches of the device against the CPU's tree: neighbours, their order, distances, waits.
#include "device/coord_twins.hpp"
// The device's headers come first: they choose the form of the steps.
#include <cmath>
#include <limits>
#include <optional>

namespace th_test {
namespace {

using tensorhash::backend::RadiusRequest;
using tensorhash::coords::Neighbors;

void expect_same_neighbours(CoordTwins& twins, RadiusRequest const& cpu,
                            RadiusRequest const& device) {
    Neighbors got, wanted;
    std::uint64_t const before = twins.queue.read_backs;
    std::string const error = error_of([&] { got = twins.device.radius(device); });
    EXPECT_EQ(error, error_of([&] { wanted = twins.cpu.radius(cpu); }));
    if (error.empty()) {
        EXPECT_EQ(twins.queue.read_backs - before, 2u);
        twins.expect_same(got.offsets, wanted.offsets, "offsets");
        twins.expect_same(got.indices, wanted.indices, "indices");
        twins.expect_same(got.distances, wanted.distances, "distances");
    }
}

struct DrawnCloud {
    TwinTensor points;
    std::optional<TwinTensor> batch{};
};

/// Points on a coarse grid, so that distances repeat and lie on the radius, and points between.
DrawnCloud draw(CoordTwins& twins, Random& random, std::int64_t rows, std::int64_t axes,
                double unit, bool batched, bool outlier, std::int64_t last_batch) {
    std::vector<double> numbers;
    std::vector<std::int32_t> batch;
    bool const fine = random.one_in(2);
    for (std::int64_t row = 0; row < rows; ++row) {
        for (std::int64_t axis = 0; axis < axes; ++axis) {
            double const step = fine ? static_cast<double>(random.below(5000)) / 1000
                                     : static_cast<double>(random.below(5));
            numbers.push_back((step - 2) * unit);
        }
        batch.push_back(static_cast<std::int32_t>(between(random, -1, last_batch)));
    }
    if (outlier && rows > 0) {
        numbers.back() = 1e12 * unit;
    }
    DrawnCloud cloud{twins.tensor(numbers, {rows, axes}, Dtype::Float64)};
    if (batched) {
        cloud.batch = twins.tensor(batch, {rows}, Dtype::Int32);
    }
    return cloud;
}

/// With `batched`, there are points and queries, in batches, and no case at an edge: every body
/// runs.
void expect_same_for(std::uint64_t seed, bool batched) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    CoordTwins twins(seed);
    std::int64_t const axes = between(random, 1, 5);
    constexpr double kUnits[] = {1, 1, 1, 0.1, 1e-200, 1e140};
    bool const plain = batched;
    double const drawn_unit = kUnits[random.below(std::size(kUnits))];
    double const unit = plain ? 1 : drawn_unit;
    batched = batched || random.one_in(3);
    auto const rows_of = [&] { return !plain && random.one_in(10) ? 0 : between(random, 1, 80); };
    DrawnCloud const points =
        draw(twins, random, rows_of(), axes, unit, batched, random.one_in(6), 1);
    // Batch 2 has queries but no points.
    DrawnCloud const queries =
        random.one_in(3) ? points
                         : draw(twins, random, rows_of(), axes, unit, batched, random.one_in(8), 2);
    constexpr double kRadii[] = {0, 1, 1.4142135623730951, 0.7, 3, 1e9};
    RadiusRequest cpu{{points.points.cpu},
                      {queries.points.cpu},
                      kRadii[random.below(std::size(kRadii))] * unit,
                      {}};
    RadiusRequest device{{points.points.device}, {queries.points.device}, cpu.radius, {}};
    if (batched) {
        cpu.points.batch = points.batch->cpu;
        cpu.queries.batch = queries.batch->cpu;
        device.points.batch = points.batch->device;
        device.queries.batch = queries.batch->device;
    }
    if (!plain && random.one_in(2)) {
        cpu.max_neighbors = device.max_neighbors = between(random, 0, 12);
    }
    expect_same_neighbours(twins, cpu, device);
}

TEST(DeviceRadius, finds_the_neighbours_that_the_cpu_finds) {
    for (std::uint64_t seed = 1; seed <= std::max<std::uint64_t>(seeds(24), 24); ++seed) {
        expect_same_for(seed, false);
    }
}

TEST(DeviceRadius, finds_the_neighbours_within_batches) {
    for (std::uint64_t seed = 1; seed <= seeds(2); ++seed) {
        expect_same_for(seed, true);
    }
}

TEST(DeviceRadius, refuses_what_the_cpu_refuses) {
    constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
    std::vector<std::vector<double>> const clouds{{0, kNan}, {1e160, 2}, {0, 1}};
    for (auto const& one : clouds) {
        for (auto const& other : clouds) {
            CoordTwins twins(1);
            TwinTensor const points = twins.tensor(one, {2, 1}, Dtype::Float64);
            TwinTensor const queries = twins.tensor(other, {2, 1}, Dtype::Float64);
            expect_same_neighbours(twins, {{points.cpu}, {queries.cpu}, 1, {}},
                                   {{points.device}, {queries.device}, 1, {}});
        }
    }
}

TEST(DeviceRadius, refuses_batches_beyond_int64) {
    CoordTwins twins(1);
    TwinTensor const points = twins.tensor(std::vector<float>{0, 1}, {2, 1}, Dtype::Float32);
    TwinTensor const good = twins.tensor(std::vector<std::uint64_t>{0, 1}, {2}, Dtype::UInt64);
    TwinTensor const wrong = twins.tensor(std::vector<std::uint64_t>{0, ~0ull}, {2}, Dtype::UInt64);
    expect_same_neighbours(twins, {{points.cpu, good.cpu}, {points.cpu, wrong.cpu}, 1, {}},
                           {{points.device, good.device}, {points.device, wrong.device}, 1, {}});
    expect_same_neighbours(twins, {{points.cpu, wrong.cpu}, {points.cpu, good.cpu}, 1, {}},
                           {{points.device, wrong.device}, {points.device, good.device}, 1, {}});
}

TEST(DeviceRadius, takes_every_dtype) {
    for (Dtype const dtype : {Dtype::Int32, Dtype::UInt8, Dtype::Float16, Dtype::BFloat16}) {
        CoordTwins twins(2);
        std::vector<unsigned char> bytes(64 * tensorhash::byte_size(dtype));
        for (std::size_t i = 0; i < bytes.size(); ++i) {
            bytes[i] = static_cast<unsigned char>(i * 7 % 64);
        }
        TwinTensor const points = twins.tensor(bytes, {32, 2}, dtype);
        expect_same_neighbours(twins, {{points.cpu}, {points.cpu}, 3, {}},
                               {{points.device}, {points.device}, 3, {}});
    }
}

}  // namespace
}  // namespace th_test
