// Expansion by blocks of bits against a plain loop: the same rows in the same order.
#include "coords/rows/expand_blocks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "support/coords.hpp"
#include "tensorhash/coords/ops.hpp"

namespace {

using tensorhash::Dtype;
using tensorhash::Tensor;
using th_test::Coord;
using th_test::Coords;
namespace coords = tensorhash::coords;

constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kLeast32 = std::numeric_limits<std::int32_t>::min();
constexpr std::int64_t kMost32 = std::numeric_limits<std::int32_t>::max();

struct Case {
    std::string name;
    Coords rows;
    Coords offsets;
    bool by_blocks = true;
};

/// Whether the dtype holds all rows and all sums.
template <class Int>
bool fits(Case const& one) {
    auto const holds = [](std::int64_t value) { return value == static_cast<Int>(value); };
    for (Coord const& row : one.rows) {
        if (!std::all_of(row.begin(), row.end(), holds)) return false;
        for (Coord const& offset : one.offsets) {
            for (std::size_t axis = 0; axis < offset.size(); ++axis) {
                if (!holds(row[axis + 1] + offset[axis])) return false;
            }
        }
    }
    return true;
}

/// The rows of each batch, then its sums offset by offset; equal ones once.
Coords expansion_of(Case const& one) {
    std::map<std::int64_t, Coords> batches;
    std::set<Coord> seen;
    auto const add = [&](Coord const& row) {
        if (seen.insert(row).second) batches[row[0]].push_back(row);
    };
    for (Coord const& row : one.rows) add(row);
    for (Coord const& offset : one.offsets) {
        for (Coord row : one.rows) {
            for (std::size_t axis = 0; axis < offset.size(); ++axis) row[axis + 1] += offset[axis];
            add(row);
        }
    }
    Coords all;
    for (auto const& [batch, rows] : batches) all.insert(all.end(), rows.begin(), rows.end());
    return all;
}

/// All steps of `first` to `last` on every axis, times `dilation`.
Coords cube(std::size_t axes, std::int64_t first, std::int64_t last, std::int64_t dilation = 1) {
    Coords out{Coord{}};
    for (std::size_t axis = 0; axis < axes; ++axis) {
        Coords longer;
        for (Coord const& offset : out) {
            for (std::int64_t step = first; step <= last; ++step) {
                longer.push_back(offset);
                longer.back().push_back(step * dilation);
            }
        }
        out = longer;
    }
    return out;
}

Coords random_rows(std::size_t count, std::size_t axes, std::int64_t width, std::int64_t batches,
                   bool is_sorted, std::int64_t at = 0) {
    std::mt19937_64 random(count + axes);
    std::set<Coord> seen;
    Coords rows;
    while (rows.size() < count) {
        auto const share =
            static_cast<std::int64_t>(rows.size()) * batches / static_cast<std::int64_t>(count);
        Coord row{is_sorted ? share : static_cast<std::int64_t>(random()) % batches};
        for (std::size_t axis = 0; axis < axes; ++axis) {
            row.push_back(at + static_cast<std::int64_t>(random() % std::uint64_t(width)) -
                          width / 2);
        }
        if (seen.insert(row).second) rows.push_back(row);
    }
    return rows;
}

std::vector<Case> cases() {
    constexpr std::int64_t kFar = std::int64_t{1} << 60;
    Coords repeated = random_rows(500, 3, 20, 1, true);
    repeated.push_back(repeated[7]);
    Coords twice = cube(3, -1, 1);
    for (std::size_t i = 0; i < 20; ++i) twice.push_back(Coord(twice[i]));
    return {
        {"dense 3^3", random_rows(6000, 3, 24, 1, true), cube(3, -1, 1)},
        {"sparse 3^3", random_rows(5000, 3, 5000, 2, true), cube(3, -1, 1)},
        {"5^3, batches mixed", random_rows(3000, 3, 40, 3, false), cube(3, -2, 2)},
        {"2^3, transposed", random_rows(9000, 3, 60, 4, true), cube(3, 0, 1)},
        {"dilated by 8", random_rows(2000, 3, 60, 2, true), cube(3, -1, 1, 8)},
        {"two axes", random_rows(5000, 2, 120, 3, false), cube(2, -2, 2)},
        {"one axis", random_rows(5000, 1, 20'000, 2, false), cube(1, -3, 4)},
        {"one row", {{-5, 3, -4, 0}}, cube(3, -1, 1)},
        {"only the rows", random_rows(300, 3, 20, 2, false), {{0, 0, 0}}},
        {"repeated offsets", random_rows(300, 3, 20, 2, true), twice},
        {"many small batches", random_rows(3000, 3, 9, 1500, false), cube(3, -1, 1)},
        {"batches below zero", {{-3, 1, 1}, {-7, 1, 1}, {-3, 1, 2}}, cube(2, -1, 1)},
        {"far out", random_rows(3000, 3, 30, 2, true, kFar), cube(3, -1, 1)},
        // Sums from several blocks meet; a cell's place in its block plus the offset overflows.
        {"offsets near the end of int64",
         {{0, -5, 0, 0}, {0, -4, 0, 0}, {0, -1, 0, 0}, {0, 0, 0, 0}},
         {{kMost, 0, 0}, {kMost - 1, 0, 0}, {kMost - 3, 0, 0}, {kMost - 4, 1, 0}}},
        {"offsets near the other end",
         {{0, 5}, {0, 4}, {0, 63}, {0, 64}},
         {{kLeast}, {kLeast + 1}, {kLeast + 59}, {kLeast + 60}}},
        {"both ends of int32",
         {{0, kLeast32, kMost32 - 1, 0}, {1, kMost32 - 1, kLeast32, 5}},
         cube(3, 0, 1)},
        {"both ends of int64", {{0, kLeast}, {0, kMost - 1}, {0, 0}}, cube(1, 0, 1)},
        {"batches at both ends", {{kLeast, 0, 0}, {kMost, 0, 0}}, cube(2, -1, 1), false},
        {"one step aside", random_rows(300, 3, 20, 2, true), {{0, 1, 0}}},
        {"one step across", random_rows(300, 3, 20, 2, true), {{1, 1, 1}}, false},
        {"a box too large",
         {{0, -kFar, -kFar, -kFar}, {0, kFar, kFar, kFar}},
         cube(3, 0, 1),
         false},
        {"repeated rows", repeated, cube(3, -1, 1), false},
        {"four axes", random_rows(500, 4, 6, 2, true), cube(4, 0, 1), false},
        {"scattered offsets",
         random_rows(500, 3, 60, 1, true),
         {{0, 0, 0}, {41, 7, 3}, {-35, 99, 2}, {13, -71, 55}, {90, 2, -31}},
         false},
    };
}

/// Where each batch ends in `rows`: all batches from 0 on up to `batches`, or those that occur.
std::vector<std::int64_t> ends_of(Coords const& rows, std::optional<std::int64_t> batches) {
    std::map<std::int64_t, std::int64_t> sizes;
    for (std::int64_t batch = 0; batch < batches.value_or(0); ++batch) sizes[batch] = 0;
    for (Coord const& row : rows) ++sizes[row[0]];
    std::vector<std::int64_t> ends{0};
    for (auto const& [batch, size] : sizes) ends.push_back(ends.back() + size);
    return ends;
}

template <class Int>
void expect_rows(coords::BatchedCoords const& found, Coords const& expected,
                 std::vector<std::int64_t> const& ends) {
    Tensor const host = found.coords.to({});
    auto const values = host.as<Int>();
    auto const columns = static_cast<std::size_t>(host.shape()[1]);
    ASSERT_EQ(values.size(), expected.size() * columns);
    for (std::size_t row = 0; row < expected.size(); ++row) {
        for (std::size_t column = 0; column < columns; ++column) {
            ASSERT_EQ(values[row * columns + column], expected[row][column]) << "row " << row;
        }
    }
    Tensor const offsets = found.offsets.to({});
    auto const span = offsets.as<std::int64_t>();
    EXPECT_EQ(std::vector<std::int64_t>(span.begin(), span.end()), ends);
}

/// By blocks, if they serve the case, and as the public function chooses.
template <class Int>
void expect_expansion(Case const& one, Coords const& expected,
                      std::optional<std::int64_t> batches) {
    std::size_t const columns = one.rows[0].size();
    Tensor const rows = th_test::tensor_of<Int>(one.rows, columns);
    std::vector<std::int64_t> flat;
    for (Coord const& offset : one.offsets) flat.insert(flat.end(), offset.begin(), offset.end());
    Tensor const offsets = Tensor::from(flat, {static_cast<std::int64_t>(one.offsets.size()),
                                               static_cast<std::int64_t>(columns - 1)});
    coords::BatchedRows batched = coords::copy_batched_rows(
        {rows.to({}), one.rows.size(), static_cast<std::uint32_t>(columns)}, batches);
    // As copy_batched_rows() says: without `batches`, ordinary ones are counted from 0, too.
    std::optional<std::int64_t> counted = batches;
    if (!counted && batched.batches) counted = static_cast<std::int64_t>(*batched.batches);
    std::vector<std::int64_t> const ends = ends_of(expected, counted);
    auto const by_blocks = coords::expand_by_blocks(batched, flat);
    EXPECT_EQ(by_blocks.has_value(), one.by_blocks);
    if (by_blocks) expect_rows<Int>(*by_blocks, expected, ends);
    expect_rows<Int>(coords::expand_coords(rows, offsets, 0, batches), expected, ends);
}

template <class Int>
void expect_expansion(Case const& one, Coords const& expected) {
    if (!fits<Int>(one)) return;
    expect_expansion<Int>(one, expected, std::nullopt);
    std::int64_t least = 0, most = 0;
    for (Coord const& row : one.rows) {
        least = std::min(least, row[0]);
        most = std::max(most, row[0]);
    }
    // With batches that have no rows at the end.
    if (least == 0 && most < 10'000) expect_expansion<Int>(one, expected, most + 3);
}

class ExpandBlocksOverThreads : public th_test::OverThreads {};
TH_OVER_THREADS(ExpandBlocksOverThreads);

TEST_P(ExpandBlocksOverThreads, rows_and_order_are_those_of_a_loop) {
    for (Case const& one : cases()) {
        SCOPED_TRACE(one.name);
        Coords const expected = expansion_of(one);
        expect_expansion<std::int64_t>(one, expected);
        expect_expansion<std::int32_t>(one, expected);
    }
}

TEST_P(ExpandBlocksOverThreads, rows_of_one_batch_grow_into_the_result) {
    Case one{"a bar", {}, cube(3, 0, 1)};
    for (std::int64_t x = 0; x < 4000; ++x) {
        for (std::int64_t y = 0; y < 5; ++y) one.rows.push_back({3, x * 7 % 4000, 2 * y, -x});
    }
    Coords const expected = expansion_of(one);
    // More than 256 KiB: below that, memory does not grow where it is.
    ASSERT_GT(one.rows.size() * 4 * sizeof(std::int32_t), std::size_t{256} << 10);
    expect_expansion<std::int64_t>(one, expected);
    expect_expansion<std::int32_t>(one, expected);
}

TEST(ExpandBlocks, of_no_rows_are_none_and_of_no_offsets_the_rows) {
    Tensor const offsets = Tensor::from(std::vector<std::int64_t>{1, 0, 0}, {1, 3});
    Tensor const none = th_test::tensor_of<std::int32_t>({}, 4);
    EXPECT_EQ(coords::expand_coords(none, offsets).coords.shape(), (tensorhash::Shape{0, 4}));
    Tensor const rows = th_test::tensor_of<std::int32_t>({{2, 7, 7, 7}, {1, 5, 5, 5}}, 4);
    Tensor const no_offsets = Tensor::empty({0, 3}, Dtype::Int64);
    Tensor const found = coords::expand_coords(rows, no_offsets).coords.to({});
    auto const span = found.as<std::int32_t>();
    EXPECT_EQ(std::vector<std::int32_t>(span.begin(), span.end()),
              (std::vector<std::int32_t>{1, 5, 5, 5, 2, 7, 7, 7}));
}

}  // namespace
