// Expansion by blocks of bits against a plain loop: the same rows in the same order.
#include "coords/rows/expand_blocks.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <map>
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
using th_test::on_test_device;
namespace coords = tensorhash::coords;

struct Case {
    std::string name;
    Coords rows;
    Coords offsets;
    bool by_blocks = true;
};

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
    return {
        {"dense 3^3", random_rows(6000, 3, 24, 1, true), cube(3, -1, 1)},
        {"sparse 3^3", random_rows(5000, 3, 5000, 2, true), cube(3, -1, 1)},
        {"5^3, batches mixed", random_rows(3000, 3, 40, 3, false), cube(3, -2, 2)},
        {"2^3, transposed", random_rows(9000, 3, 60, 4, true), cube(3, 0, 1)},
        {"dilated by 8", random_rows(2000, 3, 60, 2, true), cube(3, -1, 1, 8)},
        {"two axes", random_rows(5000, 2, 120, 3, false), cube(2, -2, 2)},
        {"one axis", random_rows(5000, 1, 20'000, 2, false), cube(1, -3, 4)},
        {"one row", {{-5, 3, -4, 0}}, cube(3, -1, 1)},
        {"far out", random_rows(3000, 3, 30, 2, true, kFar), cube(3, -1, 1)},
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

template <class Int>
void expect_expansion(Case const& one) {
    std::size_t const columns = one.rows[0].size();
    Tensor const rows = th_test::tensor_of<Int>(one.rows, columns);
    std::vector<std::int64_t> flat;
    for (Coord const& offset : one.offsets) flat.insert(flat.end(), offset.begin(), offset.end());
    Tensor const offsets = Tensor::from(flat, {static_cast<std::int64_t>(one.offsets.size()),
                                               static_cast<std::int64_t>(columns - 1)});
    coords::BatchedRows const batched = coords::copy_batched_rows(
        {rows.to({}), one.rows.size(), static_cast<std::uint32_t>(columns)}, std::nullopt);
    EXPECT_EQ(coords::expand_by_blocks(batched, flat).has_value(), one.by_blocks);
    Coords const expected = expansion_of(one);
    coords::BatchedCoords const found = coords::expand_coords(rows, offsets);
    Tensor const host = found.coords.to({});
    auto const values = host.as<Int>();
    ASSERT_EQ(values.size(), expected.size() * columns);
    for (std::size_t row = 0; row < expected.size(); ++row) {
        for (std::size_t column = 0; column < columns; ++column) {
            ASSERT_EQ(values[row * columns + column], expected[row][column]) << "row " << row;
        }
    }
    Tensor const ends = found.offsets.to({});
    std::int64_t before = 0;
    for (std::size_t i = 1; i < ends.as<std::int64_t>().size(); ++i) {
        std::int64_t const end = ends.as<std::int64_t>()[i];
        for (std::int64_t row = before; row + 1 < end; ++row) {
            auto const at = static_cast<std::size_t>(row);
            ASSERT_EQ(expected[at][0], expected[at + 1][0]);
        }
        before = end;
    }
    EXPECT_EQ(before, static_cast<std::int64_t>(expected.size()));
}

class ExpandBlocksOverThreads : public th_test::OverThreads {};
TH_OVER_THREADS(ExpandBlocksOverThreads);

TEST_P(ExpandBlocksOverThreads, rows_and_order_are_those_of_a_loop) {
    for (Case const& one : cases()) {
        SCOPED_TRACE(one.name);
        expect_expansion<std::int64_t>(one);
        if (one.rows[0][1] < std::numeric_limits<std::int32_t>::max() &&
            one.rows[0][1] > std::numeric_limits<std::int32_t>::min()) {
            expect_expansion<std::int32_t>(one);
        }
    }
}

}  // namespace
