// Kernel maps against brute force: every pair once, in order, on any number of threads, whatever the keys' width.
#include "tensorhash/coords/kernel_map.hpp"

#include <algorithm>
#include <map>
#include <random>

#include "support/fixtures.hpp"

namespace th_test {
namespace {

using tensorhash::ValueError;
using tensorhash::coords::Duplicates;
using tensorhash::coords::Kernel;
using tensorhash::coords::KernelMap;
using tensorhash::coords::KernelMapOptions;
using tensorhash::coords::Strategy;

using Row = std::vector<std::int32_t>;
using Rows = std::vector<Row>;

Tensor tensor_of(Rows const& rows, std::size_t columns) {
    std::vector<std::int32_t> flat;
    for (Row const& row : rows) flat.insert(flat.end(), row.begin(), row.end());
    return Tensor::from(
        flat, {static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(columns)});
}

/// Distinct rows in random order; axis a is spread over [-range[a], range[a]].
Rows random_rows(std::size_t count, std::vector<std::int32_t> const& range, unsigned seed) {
    std::mt19937 random(seed);
    std::map<Row, bool> seen;
    Rows rows;
    for (std::size_t i = 0; i < count; ++i) {
        Row row{static_cast<std::int32_t>(random() % 3)};
        for (std::int32_t const limit : range) {
            // Clusters of neighbours, however far apart the clusters are.
            std::int32_t const near = static_cast<std::int32_t>(random() % 5) - 2;
            std::int32_t const far = limit == 0 ? 0 : static_cast<std::int32_t>(random() % 3) - 1;
            row.push_back(far * limit + (far > 0   ? -std::abs(near)
                                         : far < 0 ? std::abs(near)
                                                   : near));
        }
        if (seen.emplace(row, true).second) rows.push_back(row);
    }
    return rows;
}

/// A third of the cells of a cube, in random order.
Rows dense_rows(std::int32_t side, std::size_t axes, unsigned seed) {
    std::mt19937 random(seed);
    Rows rows;
    Row row(axes + 1, 0);
    for (std::size_t axis = 0; axis < row.size();) {
        if (random() % 3 == 0) rows.push_back(row);
        // To the next cell, as a counter with a digit for each axis.
        for (axis = 1; axis < row.size() && ++row[axis] == side; ++axis) row[axis] = 0;
    }
    std::shuffle(rows.begin(), rows.end(), random);
    return rows;
}

struct Pairs {
    std::vector<std::int32_t> in;
    std::vector<std::int32_t> out;
    std::vector<std::int64_t> offsets{0};
};

Pairs brute_force(Rows const& in, Rows const& out, Shape const& stride, Kernel const& kernel) {
    std::map<std::vector<std::int64_t>, std::int32_t> where;
    for (std::size_t i = 0; i < in.size(); ++i) {
        where.emplace(std::vector<std::int64_t>(in[i].begin(), in[i].end()),
                      static_cast<std::int32_t>(i));
    }
    Tensor const table = tensorhash::coords::kernel_offsets_from_size(kernel);
    auto const offsets = table.as<std::int32_t>();
    auto const columns = static_cast<std::size_t>(table.shape()[1]);
    Pairs pairs;
    for (std::size_t k = 0; k < offsets.size() / columns; ++k) {
        for (std::size_t o = 0; o < out.size(); ++o) {
            std::vector<std::int64_t> sought(out[o].begin(), out[o].end());
            for (std::size_t c = 1; c < columns; ++c) {
                sought[c] = sought[c] * stride[c - 1] + offsets[k * columns + c];
            }
            if (auto const hit = where.find(sought); hit != where.end()) {
                pairs.in.push_back(hit->second);
                pairs.out.push_back(static_cast<std::int32_t>(o));
            }
        }
        pairs.offsets.push_back(static_cast<std::int64_t>(pairs.in.size()));
    }
    return pairs;
}

void expect_pairs(KernelMap const& map, Pairs const& want) {
    EXPECT_EQ(to_vector<std::int32_t>(map.in_maps), want.in);
    EXPECT_EQ(to_vector<std::int32_t>(map.out_maps), want.out);
    EXPECT_EQ(to_vector<std::int64_t>(map.offsets), want.offsets);
}

/// How far the rows reach on the widest axis.
std::int64_t extent_of(Rows const& rows) {
    std::int64_t widest = 0;
    for (std::size_t c = 0; !rows.empty() && c < rows[0].size(); ++c) {
        auto const by_column = [&](Row const& a, Row const& b) { return a[c] < b[c]; };
        auto const [low, high] = std::minmax_element(rows.begin(), rows.end(), by_column);
        widest = std::max(widest, std::int64_t{(*high)[c]} - (*low)[c]);
    }
    return widest;
}

bool takes(Strategy strategy, Kernel const& kernel, Rows const& in) {
    if (strategy == Strategy::Blocks) {
        bool fits = kernel.size.size() <= 3 && kernel.dilation.empty() && extent_of(in) < 256;
        for (std::int64_t const size : kernel.size) fits = fits && size <= 16;
        return fits;
    }
    if (strategy != Strategy::Hierarchical) return true;
    bool fits = kernel.size.size() == 3 && kernel.dilation.empty() && kernel.center.empty();
    for (std::int64_t const size : kernel.size) fits = fits && size % 2 == 1;
    return fits;
}

class KernelMaps : public OverThreads {
protected:
    static void check(Rows const& in, Rows const& out, Shape const& stride, Kernel const& kernel,
                      Duplicates duplicates = Duplicates::Refuse) {
        Pairs const want = brute_force(in, out, stride, kernel);
        std::size_t const columns = kernel.size.size() + 1;
        for (Strategy const strategy : {Strategy::Fastest, Strategy::Merge, Strategy::Flat,
                                        Strategy::Hierarchical, Strategy::Seed, Strategy::Blocks}) {
            if (!takes(strategy, kernel, in)) continue;
            SCOPED_TRACE(tensorhash::coords::name(strategy));
            KernelMapOptions options;
            options.strategy = strategy;
            options.duplicates = duplicates;
            expect_pairs(
                tensorhash::coords::generate_kernel_map(
                    tensor_of(in, columns), tensor_of(out, columns), stride, kernel, options),
                want);
        }
    }
};
TH_OVER_THREADS(KernelMaps);

TEST_P(KernelMaps, keys_of_one_three_and_seven_words_give_the_same_pairs) {
    constexpr std::int32_t far = 2147483645;
    for (std::vector<std::int32_t> const& range : {std::vector<std::int32_t>{0, 0, 0},
                                                   {far, far, far},
                                                   {0, far, 0, far},
                                                   {far, far, far, far, far, far}}) {
        Kernel kernel{{3, 3, 3}};
        kernel.size.resize(range.size(), 2);
        Rows const rows = random_rows(400, range, 7);
        Shape const ones(range.size(), 1);
        check(rows, rows, ones, kernel);
        check(rows, Rows(rows.rbegin(), rows.rend()), ones, kernel);
    }
}

TEST_P(KernelMaps, odd_even_dilated_strided_and_shifted_kernels) {
    Rows const rows = random_rows(500, {6, 6, 6}, 1);
    Rows const other = random_rows(300, {6, 0, 6}, 2);
    for (Kernel const& kernel :
         {Kernel{{5, 5, 5}}, Kernel{{2, 4, 3}}, Kernel{{1, 7, 1}}, Kernel{{3, 3, 3}, {2, 1, 3}},
          Kernel{{3, 2, 3}, {1, 1, 7}}, Kernel{{3, 3, 3}, {}, {4, 0, -2}}, Kernel{{1, 1, 1}}}) {
        check(rows, rows, {1, 1, 1}, kernel);
        check(rows, other, {2, 1, 3}, kernel);
    }
}

TEST_P(KernelMaps, kernels_that_reach_over_the_borders_of_blocks) {
    // Full enough that every step leads somewhere, over borders in every direction and corners too.
    Rows const cube = dense_rows(18, 3, 20);
    Rows const flat = dense_rows(27, 2, 21);
    for (Kernel const& kernel :
         {Kernel{{3, 3, 3}}, Kernel{{1, 3, 3}}, Kernel{{3, 1, 3}}, Kernel{{3, 3, 1}},
          Kernel{{3, 1, 1}}, Kernel{{1, 1, 3}}, Kernel{{5, 5, 5}}, Kernel{{2, 4, 3}}}) {
        check(cube, cube, {1, 1, 1}, kernel);
        check(cube, Rows(cube.begin(), cube.begin() + 500), {1, 1, 1}, kernel);
    }
    for (Kernel const& kernel : {Kernel{{3, 3}}, Kernel{{1, 3}}, Kernel{{3, 1}}, Kernel{{7, 4}}}) {
        check(flat, flat, {1, 1}, kernel);
    }
}

TEST_P(KernelMaps, many_rows_in_dense_blocks_are_cut_among_the_threads) {
    Rows const cube = dense_rows(32, 3, 22);
    for (Kernel const& kernel : {Kernel{{3, 3, 3}}, Kernel{{3, 1, 3}}}) {
        check(cube, cube, {1, 1, 1}, kernel);
    }
}

TEST_P(KernelMaps, rows_in_the_order_of_blocks_stay_in_their_order) {
    Rows rows;
    for (std::int32_t block = 0; block < 2; ++block)
        for (std::int32_t x = 0; x < 3; ++x)
            for (std::int32_t y = 0; y < 8; ++y)
                for (std::int32_t z = 0; z < 8; ++z) rows.push_back({0, x, y, 8 * block + z});
    check(rows, rows, {1, 1, 1}, Kernel{{3, 3, 3}});
}

TEST_P(KernelMaps, kernels_over_several_blocks_and_over_none) {
    Rows const rows = random_rows(300, {20, 3, 9}, 8);
    Rows const flat = random_rows(300, {11, 30}, 9);
    for (Kernel const& kernel :
         {Kernel{{8, 8, 8}}, Kernel{{9, 1, 9}}, Kernel{{2, 16, 5}}, Kernel{{1, 3, 15}},
          Kernel{{7, 7, 7}, {}, {20, -9, 6}}, Kernel{{10, 2, 2}, {}, {9, 1, 0}},
          Kernel{{3, 3, 3}, {}, {300, 300, 300}}}) {
        check(rows, rows, {1, 1, 1}, kernel);
        check(rows, random_rows(200, {20, 3, 9}, 10), {1, 1, 1}, kernel);
        check(rows, random_rows(200, {3, 3, 3}, 11), {7, 1, 4}, kernel);
    }
    for (Kernel const& kernel : {Kernel{{5, 5}}, Kernel{{16, 9}}, Kernel{{1, 2}}}) {
        check(flat, flat, {1, 1}, kernel);
        check(flat, random_rows(200, {11, 30}, 12), {1, 2}, kernel);
    }
}

TEST_P(KernelMaps, the_fastest_path_is_blocks_unless_rows_lie_far_apart) {
    auto const path = [](Rows const& rows, Kernel const& kernel) {
        std::size_t const axes = kernel.size.size();
        Tensor const tensor = tensor_of(rows, axes + 1);
        return tensorhash::coords::generate_kernel_map(tensor, tensor, Shape(axes, 1), kernel)
            .strategy;
    };
    Rows const near = random_rows(300, {6, 6, 6}, 13);
    Rows const far = random_rows(300, {2000000000, 6, 6}, 14);
    EXPECT_EQ(path(near, {{3, 3, 3}}), Strategy::Blocks);
    EXPECT_EQ(path(near, {{17, 3, 3}}), Strategy::Merge);
    EXPECT_EQ(path(near, {{3, 3, 3}, {1, 1, 2}}), Strategy::Merge);
    EXPECT_EQ(path(far, {{3, 3, 3}}), Strategy::Merge);
    KernelMapOptions options;
    options.strategy = Strategy::Blocks;
    auto const forced = [&](Rows const& rows, Kernel const& kernel) {
        return message_of<ValueError>([&] {
            tensorhash::coords::generate_kernel_map(tensor_of(rows, 4), tensor_of(rows, 4),
                                                    {1, 1, 1}, kernel, options);
        });
    };
    EXPECT_EQ(forced(far, {{3, 3, 3}}).rfind("in_coords: the blocks path takes", 0), 0U);
    EXPECT_EQ(forced(near, {{3, 17, 3}}),
              "kernel_size: axis 1: the blocks path takes 1 to 16, got 17; use the strategy merge "
              "or the fastest");
    EXPECT_EQ(forced(near, {{3, 3, 3}, {1, 1, 2}}),
              "kernel_dilation: axis 2: the blocks path takes 1, got 2; use the strategy merge or "
              "the fastest");
}

TEST_P(KernelMaps, many_rows_are_cut_among_the_threads) {
    std::mt19937 random(3);
    Rows rows;
    for (std::int32_t x = 0; x < 24; ++x) {
        for (std::int32_t y = 0; y < 24; ++y) {
            for (std::int32_t z = 0; z < 24; ++z) {
                if (random() % 2 == 0) rows.push_back({0, x, y, z});
            }
        }
    }
    std::shuffle(rows.begin(), rows.end(), random);
    check(rows, rows, {1, 1, 1}, {{3, 1, 3}});
    check(rows, rows, {1, 1, 1}, {{3, 3, 9}});
    check(rows, Rows(rows.rbegin(), rows.rend()), {1, 1, 1}, {{1, 1, 3}});
}

TEST_P(KernelMaps, repeated_rows_are_refused_or_the_first_counts) {
    Rows const rows = random_rows(300, {3, 3}, 4);
    Rows twice = rows;
    twice.insert(twice.end(), rows.begin() + 5, rows.begin() + 25);
    check(twice, rows, {1, 1}, {{3, 3}}, Duplicates::First);
    check(twice, twice, {1, 1}, {{3, 3}}, Duplicates::First);
    for (Strategy const strategy : {Strategy::Merge, Strategy::Flat, Strategy::Blocks}) {
        KernelMapOptions options;
        options.strategy = strategy;
        std::string const message = message_of<ValueError>([&] {
            tensorhash::coords::generate_kernel_map(tensor_of(twice, 3), tensor_of(rows, 3), {1, 1},
                                                    {{3, 3}}, options);
        });
        EXPECT_EQ(message, "in_coords: row " + std::to_string(rows.size()) +
                               " repeats row 5; drop repeated rows, or set duplicates to first");
    }
}

TEST_P(KernelMaps, transposed_table_mask_and_csr_agree) {
    Rows const in = random_rows(400, {4, 4, 4}, 5);
    Rows const out = random_rows(300, {4, 4, 4}, 6);
    KernelMap const map = tensorhash::coords::generate_kernel_map(
        tensor_of(in, 4), tensor_of(out, 4), {1, 1, 1}, {{3, 4, 3}});
    KernelMap const turned = tensorhash::coords::transpose(map);
    KernelMap const back = tensorhash::coords::transpose(turned);
    EXPECT_TRUE(same_bytes(back.in_maps, map.in_maps));
    EXPECT_TRUE(same_bytes(back.out_maps, map.out_maps));
    std::vector<std::int32_t> const table =
        to_vector<std::int32_t>(tensorhash::coords::pair_table(map));
    std::vector<std::int32_t> const mask =
        to_vector<std::int32_t>(tensorhash::coords::pair_mask(map));
    std::vector<std::int32_t> by_row;
    for (std::size_t row = 0; row < out.size(); ++row) {
        for (std::size_t k = 0; k < 36; ++k) {
            std::int32_t const cell = table[k * out.size() + row];
            auto const word = static_cast<std::uint32_t>(mask[row * 2 + k / 32]);
            EXPECT_EQ((word >> (k % 32)) & 1U, cell >= 0 ? 1U : 0U);
            if (cell >= 0) by_row.push_back(cell);
        }
    }
    EXPECT_EQ(to_vector<std::int32_t>(tensorhash::coords::to_csr(map).in_maps), by_row);
    EXPECT_EQ(by_row.size(), static_cast<std::size_t>(map.in_maps.size()));
}

}  // namespace
}  // namespace th_test
