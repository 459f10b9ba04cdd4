// Voxels of the device against the CPU's: coordinates, reductions, errors and waits.
#include "device/coord_twins.hpp"
// The device's headers come first: they choose the form of the steps.
#include <bit>
#include <cmath>
#include <limits>
#include <optional>

namespace th_test {
namespace {

using tensorhash::backend::VoxelizeRequest;
using tensorhash::coords::VoxelReduce;

constexpr Dtype kPointDtypes[] = {Dtype::Float64, Dtype::Float32, Dtype::Float16, Dtype::BFloat16,
                                  Dtype::Int8,    Dtype::Int16,   Dtype::Int32,   Dtype::Int64,
                                  Dtype::UInt8,   Dtype::UInt16,  Dtype::UInt32,  Dtype::UInt64};

/// Random bytes. Floats are often NaN or infinite, integers often large.
TwinTensor random_bytes(CoordTwins& twins, Random& random, Shape const& shape, Dtype dtype) {
    std::size_t bytes = tensorhash::byte_size(dtype);
    for (std::int64_t const extent : shape) {
        bytes *= static_cast<std::size_t>(extent);
    }
    std::vector<unsigned char> numbers(bytes);
    for (auto& byte : numbers) {
        byte = static_cast<unsigned char>(random.below(256));
    }
    return twins.tensor(numbers, shape, dtype);
}

/// Numbers of a few units, with a sign where the dtype has one.
template <class T>
TwinTensor small_numbers(CoordTwins& twins, Random& random, Shape const& shape, Dtype dtype) {
    std::size_t count = 1;
    for (std::int64_t const extent : shape) {
        count *= static_cast<std::size_t>(extent);
    }
    std::vector<T> numbers(count);
    for (T& number : numbers) {
        double const value = static_cast<double>(random.below(16000)) / 1000;
        number = static_cast<T>(std::is_unsigned_v<T> ? value : value - 8);
    }
    return twins.tensor(numbers, shape, dtype);
}

/// Half types are made from the upper bits of floats.
TwinTensor numbers_of(CoordTwins& twins, Random& random, Shape const& shape, Dtype dtype) {
    switch (dtype) {
        case Dtype::Float64:
            return small_numbers<double>(twins, random, shape, dtype);
        case Dtype::Float32:
            return small_numbers<float>(twins, random, shape, dtype);
        case Dtype::Int8:
            return small_numbers<std::int8_t>(twins, random, shape, dtype);
        case Dtype::Int16:
            return small_numbers<std::int16_t>(twins, random, shape, dtype);
        case Dtype::Int32:
            return small_numbers<std::int32_t>(twins, random, shape, dtype);
        case Dtype::Int64:
            return small_numbers<std::int64_t>(twins, random, shape, dtype);
        case Dtype::UInt16:
            return small_numbers<std::uint16_t>(twins, random, shape, dtype);
        case Dtype::UInt32:
            return small_numbers<std::uint32_t>(twins, random, shape, dtype);
        case Dtype::UInt64:
            return small_numbers<std::uint64_t>(twins, random, shape, dtype);
        case Dtype::Float16:
        case Dtype::BFloat16: {
            // The exponent of 1 to 8: all bits below are free.
            TwinTensor twin = random_bytes(twins, random, shape, Dtype::UInt16);
            std::vector<std::uint16_t> bits(twin.cpu.bytes() / 2);
            std::copy_n(static_cast<std::uint16_t const*>(twin.cpu.data()), bits.size(),
                        bits.data());
            for (std::uint16_t& one : bits) {
                one = dtype == Dtype::Float16 ? static_cast<std::uint16_t>((one & 0x8bff) | 0x3c00)
                                              : static_cast<std::uint16_t>((one & 0x80ff) | 0x3f80);
            }
            return twins.tensor(bits, shape, dtype);
        }
        default:
            return small_numbers<std::uint8_t>(twins, random, shape, dtype);
    }
}

void expect_same_voxels(CoordTwins& twins, VoxelizeRequest const& cpu,
                        VoxelizeRequest const& device) {
    Tensor got, wanted;
    std::uint64_t const before = twins.queue.read_backs;
    std::string const error = error_of([&] { got = twins.device.voxelize(device); });
    EXPECT_EQ(error, error_of([&] { wanted = twins.cpu.voxelize(cpu); }));
    if (error.empty()) {
        EXPECT_EQ(twins.queue.read_backs - before, 1u);
        twins.expect_same(got, wanted, "voxels");
    }
}

TEST(DeviceVoxels, of_every_dtype_are_those_of_the_cpu) {
    for (std::uint64_t seed = 1; seed <= seeds(2); ++seed) {
        for (Dtype const dtype : kPointDtypes) {
            SCOPED_TRACE(std::string(tensorhash::name(dtype)) + ", seed " + std::to_string(seed));
            Random random(seed * 100 + static_cast<std::uint64_t>(dtype));
            CoordTwins twins(seed);
            std::int64_t const axes = between(random, 1, 5);
            std::int64_t const rows = random.one_in(8) ? 0 : between(random, 1, 200);
            TwinTensor const points = numbers_of(twins, random, {rows, axes}, dtype);
            VoxelizeRequest cpu{points.cpu, {}, {}, {}, Dtype::Int32};
            for (std::int64_t axis = 0; axis < axes; ++axis) {
                cpu.voxel_size.push_back(0.1 * static_cast<double>(1 + random.below(20)));
                cpu.origin.push_back(0.37 * static_cast<double>(random.below(9)) - 1);
            }
            cpu.dtype = random.one_in(2) ? Dtype::Int64 : Dtype::Int32;
            VoxelizeRequest device = cpu;
            device.points = points.device;
            if (random.one_in(2)) {
                Dtype const of_batch = kPointDtypes[4 + random.below(8)];
                TwinTensor const batch = random_bytes(twins, random, {rows}, of_batch);
                cpu.batch = batch.cpu;
                device.batch = batch.device;
            }
            expect_same_voxels(twins, cpu, device);
        }
    }
}

TEST(DeviceVoxels, refuse_what_the_cpu_refuses) {
    constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
    constexpr double kInf = std::numeric_limits<double>::infinity();
    std::vector<std::vector<double>> const clouds{{0, 1, kNan, kInf, -kInf, kNan},
                                                  {0, kInf, 1, kNan, 2, -kInf},
                                                  {0, 1, 2, 3e9, -4e9, 5},
                                                  {1, 2, 3, 4, 1e300, -1e300},
                                                  {-2147483648.0, 2147483647.5, 0, 0, 0, 0},
                                                  {2147483648.0, 0, 0, 0, 0, 0}};
    for (auto const& cloud : clouds) {
        for (Dtype const dtype : {Dtype::Int32, Dtype::Int64}) {
            CoordTwins twins(1);
            TwinTensor const points = twins.tensor(cloud, {3, 2}, Dtype::Float64);
            VoxelizeRequest const cpu{points.cpu, {1, 1}, {0, 0}, {}, dtype};
            VoxelizeRequest device = cpu;
            device.points = points.device;
            expect_same_voxels(twins, cpu, device);
        }
    }
}

TEST(DeviceVoxels, refuse_integers_that_float64_rounds) {
    CoordTwins twins(1);
    std::vector<std::uint64_t> const numbers{1, 1ull << 53, (1ull << 53) + 2, ~0ull};
    for (Dtype const dtype : {Dtype::Int64, Dtype::UInt64}) {
        TwinTensor const points = twins.tensor(numbers, {2, 2}, dtype);
        VoxelizeRequest const cpu{points.cpu, {1e9, 1e9}, {0, 0}, {}, Dtype::Int64};
        VoxelizeRequest device = cpu;
        device.points = points.device;
        expect_same_voxels(twins, cpu, device);
    }
}

/// Every voxel has a row, unless `wrong`.
std::vector<std::int64_t> draw_inverse(Random& random, std::int64_t rows, std::int64_t voxels,
                                       bool wrong) {
    std::vector<std::int64_t> inverse;
    for (std::int64_t row = 0; row < rows; ++row) {
        inverse.push_back(row < voxels && !wrong ? row : between(random, 0, voxels - 1));
    }
    if (wrong && random.one_in(2)) {
        inverse[random.below(inverse.size())] = random.one_in(2) ? -1 : voxels;
    }
    return inverse;
}

void expect_same_reduction(std::uint64_t seed, Dtype dtype, VoxelReduce reduce, bool any_bits) {
    SCOPED_TRACE(std::string(tensorhash::name(dtype)) + ", reduce " +
                 std::to_string(static_cast<int>(reduce)) + ", seed " + std::to_string(seed));
    Random random(seed * 1000 + static_cast<std::uint64_t>(dtype) * 10 +
                  static_cast<std::uint64_t>(reduce));
    CoordTwins twins(seed);
    std::int64_t const rows = random.one_in(8) ? 0 : between(random, 1, 120);
    std::int64_t const voxels =
        rows == 0 ? 0 : between(random, 1, std::min<std::int64_t>(rows, 40));
    Shape const shape{rows, between(random, 1, 3)};
    bool const wrong = rows > 0 && random.one_in(6);
    auto const numbers = draw_inverse(random, rows, voxels, wrong);
    TwinTensor const inverse = twins.tensor(numbers, {rows}, Dtype::Int64);
    TwinTensor const values = any_bits ? random_bytes(twins, random, shape, dtype)
                                       : numbers_of(twins, random, shape, dtype);
    Tensor got, wanted;
    std::uint64_t const before = twins.queue.read_backs;
    std::string const error = error_of(
        [&] { got = twins.device.reduce_voxels(values.device, inverse.device, voxels, reduce); });
    EXPECT_EQ(error, error_of([&] {
                  wanted = twins.cpu.reduce_voxels(values.cpu, inverse.cpu, voxels, reduce);
              }));
    if (error.empty()) {
        EXPECT_EQ(twins.queue.read_backs - before, 1u);
        twins.expect_same(got, wanted, "values");
    }
}

constexpr VoxelReduce kReductions[] = {VoxelReduce::First, VoxelReduce::Last, VoxelReduce::Sum,
                                       VoxelReduce::Mean,  VoxelReduce::Min,  VoxelReduce::Max};

TEST(DeviceVoxels, are_reduced_as_on_the_cpu) {
    std::vector<Dtype> dtypes(std::begin(kPointDtypes), std::end(kPointDtypes));
    dtypes.push_back(Dtype::Bool);
    for (std::uint64_t seed = 1; seed <= seeds(2); ++seed) {
        for (Dtype const dtype : dtypes) {
            for (VoxelReduce const reduce : kReductions) {
                expect_same_reduction(seed, dtype, reduce, false);
                expect_same_reduction(seed, dtype, reduce, true);
            }
        }
    }
}

TEST(DeviceVoxels, keep_the_bits_of_nan_and_infinity) {
    std::vector<std::uint32_t> const bits{0x7f800001, 0xffc12345, 0x7f800000, 0xff800000,
                                          0x80000000, 0x3f800000, 0x7fc00000, 0xff800001};
    for (std::size_t a = 0; a < bits.size(); ++a) {
        for (std::size_t b = 0; b < bits.size(); ++b) {
            CoordTwins twins(1);
            std::vector<std::uint32_t> const rows{bits[a], bits[b], bits[(a + b) % bits.size()]};
            TwinTensor const values = twins.tensor(rows, {3, 1}, Dtype::Float32);
            TwinTensor const inverse =
                twins.tensor(std::vector<std::int64_t>{0, 0, 0}, {3}, Dtype::Int64);
            for (VoxelReduce const reduce : kReductions) {
                twins.expect_same(
                    twins.device.reduce_voxels(values.device, inverse.device, 1, reduce),
                    twins.cpu.reduce_voxels(values.cpu, inverse.cpu, 1, reduce),
                    std::to_string(static_cast<int>(reduce)) + " of " + std::to_string(a) + ", " +
                        std::to_string(b));
            }
        }
    }
}

/// Compares one pick of the device with the CPU's.
template <class Device, class Cpu>
void expect_same_pick(CoordTwins& twins, Device const& on_device, Cpu const& on_cpu,
                      std::uint64_t waits) {
    Tensor got, wanted;
    std::uint64_t const before = twins.queue.read_backs;
    std::string const error = error_of([&] { got = on_device(); });
    EXPECT_EQ(error, error_of([&] { wanted = on_cpu(); }));
    if (error.empty()) {
        EXPECT_EQ(twins.queue.read_backs - before, waits);
        twins.expect_same(got, wanted, "picked");
    }
}

void expect_same_nearest_rows(std::uint64_t seed, bool empty) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    CoordTwins twins(seed);
    std::int64_t const rows = empty ? 0 : between(random, 1, 150);
    std::int64_t const voxels =
        rows == 0 ? 0 : between(random, 1, std::min<std::int64_t>(rows, 20));
    std::int64_t const axes = between(random, 1, 4);
    auto const numbers = draw_inverse(random, rows, voxels, rows > 0 && random.one_in(6));
    TwinTensor const inverse = twins.tensor(numbers, {rows}, Dtype::Int64);
    // Whole numbers are often equally near.
    TwinTensor const points =
        numbers_of(twins, random, {rows, axes}, random.one_in(2) ? Dtype::Int8 : Dtype::Float32);
    // Voxels so large that their centres are not near the rows that they are made from.
    std::vector<double> const size(static_cast<std::size_t>(axes), 4.5);
    std::vector<double> const origin(static_cast<std::size_t>(axes), 0.25);
    VoxelizeRequest const cpu{points.cpu, size, origin, {}, Dtype::Int64};
    VoxelizeRequest device = cpu;
    device.points = points.device;
    expect_same_pick(
        twins, [&] { return twins.device.rows_near_centers(device, inverse.device, voxels); },
        [&] { return twins.cpu.rows_near_centers(cpu, inverse.cpu, voxels); }, 2);
    expect_same_pick(
        twins,
        [&] { return twins.device.rows_near_centroids(points.device, inverse.device, voxels); },
        [&] { return twins.cpu.rows_near_centroids(points.cpu, inverse.cpu, voxels); }, 2);
}

TEST(DeviceVoxels, nearest_rows_are_those_of_the_cpu) {
    for (std::uint64_t seed = 1; seed <= seeds(6); ++seed) {
        expect_same_nearest_rows(seed, false);
    }
    expect_same_nearest_rows(5, true);
}

/// Labels that differ in their upper halves, their lower ones, or both.
TwinTensor labels_of_two_halves(CoordTwins& twins, Random& random, std::int64_t rows) {
    std::vector<std::int64_t> labels;
    for (std::int64_t row = 0; row < rows; ++row) {
        labels.push_back(between(random, -2, 2) * (std::int64_t{1} << 32) + between(random, 0, 2));
    }
    return twins.tensor(labels, {rows}, Dtype::Int64);
}

void expect_same_modes(std::uint64_t seed, bool empty) {
    constexpr Dtype kLabels[] = {Dtype::Bool,   Dtype::Int8,   Dtype::Int16,
                                 Dtype::Int32,  Dtype::Int64,  Dtype::UInt8,
                                 Dtype::UInt16, Dtype::UInt32, Dtype::UInt64};
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    CoordTwins twins(seed);
    std::int64_t const rows = empty ? 0 : between(random, 1, 150);
    std::int64_t const voxels =
        rows == 0 ? 0 : between(random, 1, std::min<std::int64_t>(rows, 20));
    auto const numbers = draw_inverse(random, rows, voxels, rows > 0 && random.one_in(6));
    TwinTensor const inverse = twins.tensor(numbers, {rows}, Dtype::Int64);
    Dtype const dtype = kLabels[seed % 9];
    TwinTensor const labels = dtype == Dtype::Int64 ? labels_of_two_halves(twins, random, rows)
                                                    : numbers_of(twins, random, {rows}, dtype);
    std::optional<std::int64_t> ignored;
    if (random.one_in(2)) {
        ignored = between(random, 0, 3);
    }
    expect_same_pick(
        twins,
        [&] { return twins.device.rows_of_modes(labels.device, ignored, inverse.device, voxels); },
        [&] { return twins.cpu.rows_of_modes(labels.cpu, ignored, inverse.cpu, voxels); }, 1);
}

TEST(DeviceVoxels, modes_are_those_of_the_cpu) {
    for (std::uint64_t seed = 1; seed <= std::max<std::uint64_t>(seeds(9), 9); ++seed) {
        expect_same_modes(seed, false);
    }
    expect_same_modes(5, true);
}

}  // namespace
}  // namespace th_test
