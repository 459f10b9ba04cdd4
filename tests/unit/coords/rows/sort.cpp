// The radix sort against std::sort: any number of bits, any initial order, equal keys keep their
// order.
#include "coords/rows/sort.hpp"

#include <algorithm>
#include <numeric>
#include <random>
#include <utility>

#include "support/fixtures.hpp"

namespace th_test {
namespace {

class SortRows : public OverThreads {};
TH_OVER_THREADS(SortRows);

void check_sort(std::vector<std::uint64_t> keys) {
    std::vector<std::uint32_t> rows(keys.size());
    std::iota(rows.begin(), rows.end(), 0U);
    std::vector<std::uint32_t> want = rows;
    std::sort(want.begin(), want.end(), [&](std::uint32_t a, std::uint32_t b) {
        return std::pair(keys[a], a) < std::pair(keys[b], b);
    });
    std::vector<std::uint64_t> sorted = keys;
    std::uint64_t const largest = keys.empty() ? 0 : *std::max_element(keys.begin(), keys.end());
    tensorhash::coords::sort_rows(sorted.data(), rows.data(), rows.size(), largest);
    EXPECT_EQ(rows, want);
    for (std::size_t i = 0; i < rows.size(); ++i) ASSERT_EQ(sorted[i], keys[want[i]]);
}

TEST_P(SortRows, keys_of_any_width_come_out_in_order) {
    std::mt19937_64 random(1);
    for (int const bits : {1, 7, 11, 12, 22, 23, 33, 45, 63, 64}) {
        std::vector<std::uint64_t> keys(100000);
        for (std::uint64_t& key : keys) key = random() >> (64 - bits);
        check_sort(keys);
    }
}

TEST_P(SortRows, few_rows_and_sorted_rows_come_out_in_order) {
    check_sort({});
    check_sort({5});
    check_sort({2, 1});
    check_sort({~std::uint64_t{0}, 0});
    check_sort({0, 0, 0});
    std::vector<std::uint64_t> keys(200000);
    std::iota(keys.begin(), keys.end(), 1U);
    check_sort(keys);
    std::reverse(keys.begin(), keys.end());
    check_sort(keys);
}

TEST_P(SortRows, ignored_bits_are_kept_and_do_not_affect_the_order) {
    std::mt19937_64 random(2);
    std::vector<std::uint64_t> keys(100000);
    for (std::uint64_t& key : keys) key = random() >> 34;
    std::vector<std::uint32_t> rows(keys.size());
    std::iota(rows.begin(), rows.end(), 0U);
    std::vector<std::uint32_t> want = rows;
    std::sort(want.begin(), want.end(), [&](std::uint32_t a, std::uint32_t b) {
        return std::pair(keys[a] >> 9, a) < std::pair(keys[b] >> 9, b);
    });
    std::vector<std::uint64_t> sorted = keys;
    std::uint64_t const largest = (std::uint64_t{1} << 30) - 1;
    tensorhash::coords::sort_rows(sorted.data(), rows.data(), rows.size(), largest, 9);
    EXPECT_EQ(rows, want);
    for (std::size_t i = 0; i < rows.size(); ++i) ASSERT_EQ(sorted[i], keys[want[i]]);
}

}  // namespace
}  // namespace th_test
