// Expansions and strides of the device against the CPU's.
#include "device/coord_twins.hpp"
// The device's headers come first: they choose the form of the steps.
#include <limits>
#include <optional>

namespace th_test {
namespace {

using tensorhash::coords::BatchedCoords;

struct Drawn {
    std::vector<std::int64_t> numbers;
    std::uint32_t columns;
    bool wide;
    std::optional<std::int64_t> batches;
};

/// Some have no rows, batches that are no small numbers, or coordinates at the end of their dtype.
/// With `wide`, there are rows of this dtype, in batches that are no small numbers.
Drawn draw(std::uint64_t seed, Random& random, std::optional<bool> wide) {
    std::uint32_t const columns = 2 + static_cast<std::uint32_t>(random.below(8));
    Drawn drawn{{}, columns, wide.value_or(random.one_in(2)), {}};
    bool const odd_batches = wide || random.one_in(3);
    bool const edges = !wide && random.one_in(4);
    std::int64_t const edge = drawn.wide ? std::numeric_limits<std::int64_t>::max()
                                         : std::numeric_limits<std::int32_t>::max();
    if (!wide && random.one_in(3)) {
        drawn.batches = 5;
    }
    std::size_t const rows = !wide && seed % 7 == 0 ? 0 : 60 + random.below(60);
    for (std::size_t row = 0; row < rows; ++row) {
        drawn.numbers.push_back(odd_batches && random.one_in(10) ? between(random, -3, 1 << 30)
                                                                 : between(random, 0, 4));
        for (std::uint32_t c = 1; c < drawn.columns; ++c) {
            drawn.numbers.push_back(between(random, c < 4 ? -2 : 0, c < 4 ? 2 : 0));
        }
        if (edges && random.one_in(30)) {
            drawn.numbers.back() = random.one_in(2) ? edge : -edge - 1;
        }
    }
    return drawn;
}

void expect_same_batches(CoordTwins& twins, BatchedCoords const& got, BatchedCoords const& wanted) {
    twins.expect_same(got.coords, wanted.coords, "coords");
    twins.expect_same(got.offsets, wanted.offsets, "offsets");
}

void expect_same_expansion(std::uint64_t seed, std::optional<bool> wide) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    CoordTwins twins(seed);
    Drawn const drawn = draw(seed, random, wide);
    TwinRows const rows = twins.rows(drawn.numbers, drawn.columns, drawn.wide);
    std::vector<std::int64_t> offsets;
    for (std::size_t i = 0; i < 4 * (drawn.columns - 1); ++i) {
        offsets.push_back(between(random, -1, 1));
    }
    if (!wide && random.one_in(8)) {
        offsets.back() = std::int64_t{1} << 31;
    }
    std::size_t const chunk = random.one_in(2) ? 100 : 1 << 17;
    BatchedCoords got, wanted;
    std::string const error =
        error_of([&] { got = twins.device.expand(rows.device, offsets, chunk, drawn.batches); });
    EXPECT_EQ(error, error_of([&] {
                  wanted = twins.cpu.expand(rows.cpu, offsets, chunk, drawn.batches);
              }));
    if (error.empty()) {
        expect_same_batches(twins, got, wanted);
    }
}

TEST(DeviceBatchedRows, expand_as_on_the_cpu) {
    for (std::uint64_t seed = 1; seed <= seeds(16); ++seed) {
        for (std::optional<bool> const wide : {std::optional<bool>(), {false}, {true}}) {
            expect_same_expansion(seed, wide);
        }
    }
}

void expect_same_quotients(std::uint64_t seed, std::optional<bool> wide) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    CoordTwins twins(seed);
    Drawn const drawn = draw(seed, random, wide);
    TwinRows const rows = twins.rows(drawn.numbers, drawn.columns, drawn.wide);
    std::vector<std::int64_t> stride;
    for (std::uint32_t c = 1; c < drawn.columns; ++c) {
        stride.push_back(between(random, 1, 3));
    }
    BatchedCoords got, wanted;
    std::string const error =
        error_of([&] { got = twins.device.stride(rows.device, stride, drawn.batches); });
    EXPECT_EQ(error, error_of([&] { wanted = twins.cpu.stride(rows.cpu, stride, drawn.batches); }));
    if (error.empty()) {
        expect_same_batches(twins, got, wanted);
    }
}

TEST(DeviceBatchedRows, are_divided_as_on_the_cpu) {
    for (std::uint64_t seed = 1; seed <= seeds(16); ++seed) {
        for (std::optional<bool> const wide : {std::optional<bool>(), {false}, {true}}) {
            expect_same_quotients(seed, wide);
        }
    }
}

}  // namespace
}  // namespace th_test
