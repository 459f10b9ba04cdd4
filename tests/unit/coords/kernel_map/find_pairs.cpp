// Kernel maps against brute force: every pair once, in order, for any number of threads and any key
// width.
#include "tensorhash/coords/kernel_map.hpp"

#include <algorithm>
#include <random>

#include "support/fixtures.hpp"
#include "support/kernel_map_oracle.hpp"

namespace th_test {
namespace {

using tensorhash::ValueError;
using tensorhash::coords::Duplicates;
using tensorhash::coords::Kernel;
using tensorhash::coords::KernelMap;
using tensorhash::coords::KernelMapOptions;
using tensorhash::coords::Strategy;

void expect_pairs(KernelMap const& map, Pairs const& want) {
    EXPECT_EQ(to_vector<std::int32_t>(map.in_maps), want.in);
    EXPECT_EQ(to_vector<std::int32_t>(map.out_maps), want.out);
    EXPECT_EQ(to_vector<std::int64_t>(map.offsets), want.offsets);
}

bool takes(Strategy strategy, Kernel const& kernel, Voxels const& in) {
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
    static void check(Voxels const& in, Voxels const& out, Shape const& stride,
                      Kernel const& kernel, Duplicates duplicates = Duplicates::Refuse) {
        Pairs const want = brute_force(in, out, stride, kernel);
        std::size_t const columns = kernel.size.size() + 1;
        for (Strategy const strategy :
             {Strategy::Fastest, Strategy::Merge, Strategy::Flat, Strategy::Hierarchical,
              Strategy::WarpConvNet, Strategy::Blocks}) {
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
        Voxels const rows = random_rows(400, range, 7);
        Shape const ones(range.size(), 1);
        check(rows, rows, ones, kernel);
        check(rows, Voxels(rows.rbegin(), rows.rend()), ones, kernel);
    }
}

TEST_P(KernelMaps, odd_even_dilated_strided_and_shifted_kernels) {
    Voxels const rows = random_rows(500, {6, 6, 6}, 1);
    Voxels const other = random_rows(300, {6, 0, 6}, 2);
    for (Kernel const& kernel :
         {Kernel{{5, 5, 5}}, Kernel{{2, 4, 3}}, Kernel{{1, 7, 1}}, Kernel{{3, 3, 3}, {2, 1, 3}},
          Kernel{{3, 2, 3}, {1, 1, 7}}, Kernel{{3, 3, 3}, {}, {4, 0, -2}}, Kernel{{1, 1, 1}}}) {
        check(rows, rows, {1, 1, 1}, kernel);
        check(rows, other, {2, 1, 3}, kernel);
    }
}

TEST_P(KernelMaps, kernels_that_reach_across_block_borders) {
    // Dense enough that most steps hit a voxel, across faces, edges and corners of blocks.
    Voxels const cube = dense_rows(18, 3, 20);
    Voxels const flat = dense_rows(27, 2, 21);
    for (Kernel const& kernel :
         {Kernel{{3, 3, 3}}, Kernel{{1, 3, 3}}, Kernel{{3, 1, 3}}, Kernel{{3, 3, 1}},
          Kernel{{3, 1, 1}}, Kernel{{1, 1, 3}}, Kernel{{5, 5, 5}}, Kernel{{2, 4, 3}}}) {
        check(cube, cube, {1, 1, 1}, kernel);
        check(cube, Voxels(cube.begin(), cube.begin() + 500), {1, 1, 1}, kernel);
    }
    for (Kernel const& kernel : {Kernel{{3, 3}}, Kernel{{1, 3}}, Kernel{{3, 1}}, Kernel{{7, 4}}}) {
        check(flat, flat, {1, 1}, kernel);
    }
}

TEST_P(KernelMaps, many_rows_in_dense_blocks_are_divided_among_the_threads) {
    Voxels const cube = dense_rows(32, 3, 22);
    for (Kernel const& kernel : {Kernel{{3, 3, 3}}, Kernel{{3, 1, 3}}}) {
        check(cube, cube, {1, 1, 1}, kernel);
    }
}

TEST_P(KernelMaps, rows_in_block_order_keep_their_order) {
    Voxels rows;
    for (std::int32_t block = 0; block < 2; ++block)
        for (std::int32_t x = 0; x < 3; ++x)
            for (std::int32_t y = 0; y < 8; ++y)
                for (std::int32_t z = 0; z < 8; ++z) rows.push_back({0, x, y, 8 * block + z});
    check(rows, rows, {1, 1, 1}, Kernel{{3, 3, 3}});
}

TEST_P(KernelMaps, kernels_over_several_blocks_and_over_none) {
    Voxels const rows = random_rows(300, {20, 3, 9}, 8);
    Voxels const flat = random_rows(300, {11, 30}, 9);
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

TEST_P(KernelMaps, the_fastest_path_is_blocks_unless_rows_or_kernel_do_not_fit) {
    auto const path = [](Voxels const& rows, Kernel const& kernel) {
        std::size_t const axes = kernel.size.size();
        Tensor const tensor = tensor_of(rows, axes + 1);
        return tensorhash::coords::generate_kernel_map(tensor, tensor, Shape(axes, 1), kernel)
            .strategy;
    };
    Voxels const near = random_rows(300, {6, 6, 6}, 13);
    Voxels const far = random_rows(300, {2000000000, 6, 6}, 14);
    EXPECT_EQ(path(near, {{3, 3, 3}}), Strategy::Blocks);
    EXPECT_EQ(path(near, {{17, 3, 3}}), Strategy::Merge);
    EXPECT_EQ(path(near, {{3, 3, 3}, {1, 1, 2}}), Strategy::Merge);
    EXPECT_EQ(path(far, {{3, 3, 3}}), Strategy::Merge);
    KernelMapOptions options;
    options.strategy = Strategy::Blocks;
    auto const forced = [&](Voxels const& rows, Kernel const& kernel) {
        return message_of<ValueError>([&] {
            tensorhash::coords::generate_kernel_map(tensor_of(rows, 4), tensor_of(rows, 4),
                                                    {1, 1, 1}, kernel, options);
        });
    };
    EXPECT_EQ(forced(far, {{3, 3, 3}}).rfind("in_coords: the blocks path takes", 0), 0U);
    EXPECT_EQ(forced(near, {{3, 17, 3}}),
              "kernel_size: axis 1: the blocks path takes 1 to 16, got 17; use the strategy merge "
              "or the default");
    EXPECT_EQ(forced(near, {{3, 3, 3}, {1, 1, 2}}),
              "kernel_dilation: axis 2: the blocks path takes 1, got 2; use the strategy merge or "
              "the default");
}

TEST_P(KernelMaps, many_rows_are_divided_among_the_threads) {
    std::mt19937 random(3);
    Voxels rows;
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
    check(rows, Voxels(rows.rbegin(), rows.rend()), {1, 1, 1}, {{1, 1, 3}});
}

/// More rows than a slab, some of them equal and some far from every in row.
template <class Int>
Tensor many_out_rows() {
    constexpr std::int64_t count = 2'200'001;
    std::mt19937 random(15);
    std::vector<Int> cells;
    for (std::int64_t row = 0; row < count; ++row) {
        cells.push_back(static_cast<Int>(random() % 3));
        for (int axis = 0; axis < 3; ++axis) {
            cells.push_back(static_cast<Int>(static_cast<Int>(random() % 70) - 35));
        }
        if (row % 9 == 0) cells.back() = -2'000'000'000;
    }
    return Tensor::from(cells, {count, 4});
}

TEST_P(KernelMaps, many_out_rows_are_taken_slab_by_slab) {
    Voxels const in = random_rows(900, {30, 30, 30}, 16);
    auto const check = [&](Tensor const& rows, Shape const& stride, Kernel const& kernel) {
        auto const map_by = [&](Strategy strategy) {
            KernelMapOptions options;
            options.strategy = strategy;
            return tensorhash::coords::generate_kernel_map(tensor_of(in, 4), rows, stride, kernel,
                                                           options);
        };
        KernelMap const map = map_by(Strategy::Fastest);
        KernelMap const want = map_by(Strategy::Merge);
        EXPECT_EQ(map.strategy, Strategy::Blocks);
        EXPECT_GT(map.in_maps.size(), 1000);
        EXPECT_TRUE(same_bytes(map.offsets, want.offsets));
        EXPECT_TRUE(same_bytes(map.in_maps, want.in_maps));
        EXPECT_TRUE(same_bytes(map.out_maps, want.out_maps));
    };
    check(many_out_rows<std::int64_t>(), {1, 1, 1}, {{3, 3, 3}});
    check(many_out_rows<std::int32_t>(), {2, 1, 3}, {{10, 4, 9}});
}

TEST_P(KernelMaps, many_out_rows_with_a_number_beyond_int32_name_its_row) {
    Tensor out = many_out_rows<std::int64_t>();
    out.as_mutable<std::int64_t>()[4 * 2'100'000 + 2] = std::int64_t{1} << 40;
    EXPECT_NE(message_of<ValueError>([&] {
                  tensorhash::coords::generate_kernel_map(
                      tensor_of(random_rows(300, {6, 6, 6}, 17), 4), out, {1, 1, 1}, {{3, 3, 3}});
              }).find("out_coords: row 2100000, column 2"),
              std::string::npos);
}

TEST_P(KernelMaps, many_out_rows_and_no_or_scattered_in_rows) {
    Tensor const out = many_out_rows<std::int32_t>();
    Tensor const none = Tensor::empty({0, 4}, tensorhash::Dtype::Int32);
    EXPECT_EQ(
        tensorhash::coords::generate_kernel_map(none, out, {1, 1, 1}, {{3, 3, 3}}).in_maps.size(),
        0);
    KernelMap const scattered = tensorhash::coords::generate_kernel_map(
        tensor_of({{0, 2'000'000'000, 3, 3}, {0, 1, 1, 1}}, 4), out, {1, 1, 1}, {{3, 3, 3}});
    EXPECT_EQ(scattered.strategy, Strategy::Merge);
    EXPECT_GT(scattered.in_maps.size(), 0);
}

TEST_P(KernelMaps, repeated_rows_are_refused_or_the_first_counts) {
    Voxels const rows = random_rows(300, {3, 3}, 4);
    Voxels twice = rows;
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
    Voxels const in = random_rows(400, {4, 4, 4}, 5);
    Voxels const out = random_rows(300, {4, 4, 4}, 6);
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
