// Casts, masks, row numbers and strided copies on a device, against the CPU's plain loops.
#include "device/selecting.hpp"
// The device's headers come first: they choose the form of the steps.
#include "device/coord_twins.hpp"

#include <bit>
#include <limits>
#include <numeric>

#include "table/elements.hpp"

namespace th_test {
namespace {

namespace backend = tensorhash::backend;
namespace device = tensorhash::device;
namespace table = tensorhash::table;
using Bytes = std::vector<unsigned char>;

constexpr Dtype kDtypes[] = {Dtype::Bool,   Dtype::Int8,    Dtype::Int16,    Dtype::Int32,
                             Dtype::Int64,  Dtype::UInt8,   Dtype::UInt16,   Dtype::UInt32,
                             Dtype::UInt64, Dtype::Float16, Dtype::BFloat16, Dtype::Float32,
                             Dtype::Float64};

/// Numbers with an edge of some dtype near them, and random ones. No NaN: its bits differ.
std::vector<double> numbers_to_cast(Random& random) {
    std::vector<double> numbers = {0.0,
                                   -0.0,
                                   0.5,
                                   -0.5,
                                   1.5,
                                   2.5,
                                   -7.9,
                                   127.0,
                                   255.0,
                                   32767.5,
                                   65504.0,
                                   65519.9,
                                   65520.0,
                                   1e-8,
                                   5.96e-8,
                                   0x1p31,
                                   -0x1p31,
                                   0x1p32,
                                   0x1p63,
                                   0x1p64,
                                   -0x1p63,
                                   1e10,
                                   3e38,
                                   1e300,
                                   1.0 / 3,
                                   1.0 + 0x1p-11 + 0x1p-40,  // a float rounds it to a tie of halves
                                   std::numeric_limits<double>::infinity(),
                                   -std::numeric_limits<double>::infinity()};
    for (int i = 0; i < 200; ++i) {
        double const scale = std::bit_cast<double>((950 + random.below(150)) << 52);
        numbers.push_back(scale * static_cast<double>(static_cast<std::int64_t>(random.next())) *
                          0x1p-63);
    }
    return numbers;
}

/// Elements of `dtype`: random bits, or the numbers above if it is a float.
Bytes elements_of(Dtype dtype, Random& random) {
    std::vector<double> const numbers = numbers_to_cast(random);
    Bytes bytes(numbers.size() * tensorhash::byte_size(dtype));
    if (dtype < Dtype::Float16) {
        std::generate(bytes.begin(), bytes.end(),
                      [&] { return static_cast<unsigned char>(random.next()); });
        return bytes;
    }
    table::cast_elements({reinterpret_cast<backend::Bytes>(numbers.data()), Dtype::Float64,
                          bytes.data(), dtype, numbers.size()});
    return bytes;
}

TEST(DeviceElements, casts_have_the_bits_of_the_cpu) {
    for (std::uint64_t seed = 1; seed <= seeds(1); ++seed) {
        Random random(seed);
        TestQueue queue({.seed = seed});
        for (Dtype const from : kDtypes) {
            Bytes const elements = elements_of(from, random);
            std::uint64_t const count = elements.size() / tensorhash::byte_size(from);
            OnDevice<unsigned char> const source(queue, elements.data(), elements.size());
            for (Dtype const to : kDtypes) {
                Bytes wanted(count * tensorhash::byte_size(to));
                table::cast_elements({elements.data(), from, wanted.data(), to, count});
                OnDevice<unsigned char> const target(queue, wanted.size());
                device::cast_elements(queue, {source.data(), from, target.data(), to, count});
                EXPECT_TRUE(target.read() == wanted)
                    << tensorhash::name(from) << " to " << tensorhash::name(to);
            }
        }
    }
}

TEST(DeviceElements, nan_is_true_and_stays_nan) {
    TestQueue queue;
    double const nan = std::numeric_limits<double>::quiet_NaN();
    OnDevice<double> const from(queue, &nan, 1);
    auto* const source = reinterpret_cast<unsigned char*>(from.data());
    OnDevice<float> const real(queue, 1);
    device::cast_elements(
        queue,
        {source, Dtype::Float64, reinterpret_cast<unsigned char*>(real.data()), Dtype::Float32, 1});
    EXPECT_NE(real.read()[0], real.read()[0]);
    OnDevice<std::uint16_t> const half(queue, 1);
    device::cast_elements(
        queue,
        {source, Dtype::Float64, reinterpret_cast<unsigned char*>(half.data()), Dtype::Float16, 1});
    EXPECT_GT(half.read()[0] & 0x7fff, 0x7c00);
    OnDevice<unsigned char> const truth(queue, 1);
    device::cast_elements(queue, {source, Dtype::Float64, truth.data(), Dtype::Bool, 1});
    EXPECT_EQ(truth.read()[0], 1);
}

TEST(DeviceElements, masks_give_their_true_rows) {
    for (std::uint64_t const rows : {1u, 31u, 256u, 257u, 1500u}) {
        CoordTwins twins(rows);
        Random random(rows);
        Bytes mask(rows);
        for (unsigned char& one : mask)
            one = random.one_in(3) ? static_cast<unsigned char>(1 + random.below(255)) : 0;
        OnDevice<unsigned char> const there(twins.queue, mask.data(), rows);
        std::uint64_t const before = twins.queue.read_backs;
        Tensor const got =
            device::true_rows(twins.queue, there.data(), rows, TensorsOnQueue::kDevice);
        EXPECT_EQ(twins.queue.read_backs, before + 1);
        twins.expect_same(got, table::true_rows(mask.data(), rows), "true rows");
    }
}

struct Picking {
    std::uint64_t rows;
    std::uint64_t row_bytes;
    std::vector<std::int64_t> indices;
};

/// Takes and puts the rows on both, and compares everything.
void check_picking(std::uint64_t seed, Picking const& picking) {
    Random random(seed);
    TestQueue queue({.seed = seed});
    std::uint64_t const count = picking.indices.size();
    Bytes array(picking.rows * picking.row_bytes);
    Bytes values(count * picking.row_bytes);
    for (Bytes* const bytes : {&array, &values}) {
        std::generate(bytes->begin(), bytes->end(),
                      [&] { return static_cast<unsigned char>(random.next()); });
    }
    OnDevice<std::int64_t> const indices(queue, picking.indices.data(), count);
    OnDevice<unsigned char> const array_there(queue, array.data(), array.size());
    OnDevice<unsigned char> const values_there(queue, values.data(), values.size());
    backend::PickedRows const here{picking.rows, picking.row_bytes, picking.indices.data(), count};
    backend::PickedRows const there{picking.rows, picking.row_bytes, indices.data(), count};

    Bytes taken(values.size());
    OnDevice<unsigned char> const taken_there(queue, values.size());
    std::string const error = error_of([&] { table::take_rows(here, array.data(), taken.data()); });
    std::uint64_t const before = queue.read_backs;
    EXPECT_EQ(
        error_of([&] { device::take_rows(queue, there, array_there.data(), taken_there.data()); }),
        error);
    EXPECT_EQ(queue.read_backs, before + (error.empty() ? 1 : 2));
    if (error.empty()) {
        EXPECT_TRUE(taken_there.read() == taken);
    }
    EXPECT_EQ(error_of([&] { table::put_rows(here, values.data(), array.data()); }), error);
    EXPECT_EQ(
        error_of([&] { device::put_rows(queue, there, values_there.data(), array_there.data()); }),
        error);
    EXPECT_TRUE(array_there.read() == array);
}

TEST(DeviceElements, rows_are_taken_and_put_by_number) {
    for (std::uint64_t seed = 1; seed <= seeds(2); ++seed) {
        Random random(seed);
        for (std::uint64_t const row_bytes : {1u, 4u, 12u, 16u, 40u}) {
            Picking picking{70, row_bytes, std::vector<std::int64_t>(300)};
            for (std::int64_t& index : picking.indices) index = between(random, -70, 69);
            check_picking(seed, picking);
        }
    }
}

TEST(DeviceElements, the_first_row_that_does_not_exist_is_named) {
    check_picking(1, {5, 8, {0, -5, 4, 5, 9}});
    check_picking(2, {5, 8, {0, -6, 7}});
    check_picking(3, {5, 8, {std::numeric_limits<std::int64_t>::min(), 1}});
    check_picking(4, {5, 8, std::vector<std::int64_t>(600, 7)});  // several wrong ones per thread
    TestQueue queue;
    std::int64_t const index = 0;
    OnDevice<std::int64_t> const there(queue, &index, 1);
    EXPECT_EQ(
        error_of([&] { device::take_rows(queue, {0, 8, there.data(), 1}, nullptr, nullptr); }),
        "indices: row 0: expected none, because there are no rows, got 0");
}

TEST(DeviceElements, strided_elements_are_written_where_the_cpu_writes_them) {
    TestQueue queue;
    std::vector<std::int32_t> numbers(3 * 4 * 2);
    std::iota(numbers.begin(), numbers.end(), 1);
    std::vector<std::int32_t> array(4 * 12, -1);
    OnDevice<std::int32_t> const from(queue, numbers.data(), numbers.size());
    OnDevice<std::int32_t> const to(queue, array.data(), array.size());
    // Rows of 12 in descending order, every third element, and two neighbours.
    Shape const shape{3, 4, 2};
    Shape const strides{-48, 12, 4};
    table::paste({reinterpret_cast<backend::Bytes>(numbers.data()),
                  reinterpret_cast<unsigned char*>(array.data() + 36), shape, strides, 4});
    device::paste(queue, {reinterpret_cast<backend::Bytes>(from.data()),
                          reinterpret_cast<unsigned char*>(to.data() + 36), shape, strides, 4});
    EXPECT_EQ(array[36], 1);
    EXPECT_EQ(array[12 + 3], 19);
    EXPECT_EQ(array[2], -1);
    EXPECT_EQ(to.read(), array);
}

TEST(DeviceElements, too_many_axes_are_refused) {
    Shape const shape(device::kMaxAxes + 1, 1);
    EXPECT_EQ(error_of([&] { (void)device::strided_copy(nullptr, nullptr, shape, shape, 4); }),
              "array: expected at most 16 dimensions on a device, got 17");
}

}  // namespace
}  // namespace th_test
