// Scans and selections against plain loops.
#include "runtime/scan.hpp"

#include <numeric>

#include "support/fixtures.hpp"

namespace {

using namespace tensorhash::runtime;

TEST(Scan, counts_become_offsets) {
    std::vector<std::int64_t> counts{3, 0, 5, 1, 0};
    EXPECT_EQ(scan(counts), 9);
    EXPECT_EQ(counts, (std::vector<std::int64_t>{0, 3, 3, 8, 9}));
    std::vector<int> none;
    EXPECT_EQ(scan(none), 0);
}

TEST(Scan, the_tasks_of_each_group_are_scanned_alone_or_group_by_group) {
    std::vector<std::uint32_t> const counts{1, 2, 3, 4, 5, 6};  // two tasks, three groups
    std::vector<std::uint32_t> alone = counts;
    EXPECT_EQ(scan_tasks(std::span(alone), 3), (std::vector<std::uint32_t>{5, 7, 9}));
    EXPECT_EQ(alone, (std::vector<std::uint32_t>{0, 0, 0, 1, 2, 3}));
    std::vector<std::uint32_t> in_turn = counts;
    scan_groups(std::span(in_turn), 3);
    EXPECT_EQ(in_turn, (std::vector<std::uint32_t>{0, 5, 12, 1, 7, 15}));
    std::vector<std::uint32_t> none;
    EXPECT_TRUE(scan_tasks(std::span(none), 0).empty());
    scan_groups(std::span(none), 0);
}

class SelectOverThreads : public th_test::OverThreads {};
TH_OVER_THREADS(SelectOverThreads);

TEST_P(SelectOverThreads, keeps_items_in_row_order) {
    for (std::size_t const rows : {0u, 1u, 63u, 4096u, 100'001u}) {
        auto const copies = [](std::size_t row) { return row % 7 == 0 ? row % 3 : 0; };
        std::vector<std::size_t> expected;
        for (std::size_t row = 0; row < rows; ++row) {
            expected.insert(expected.end(), copies(row), row);
        }
        std::vector<std::size_t> kept{~std::size_t{0}};
        select(
            cut(rows, 64),
            [&](std::size_t begin, std::size_t end) {
                std::size_t count = 0;
                for (std::size_t row = begin; row < end; ++row) count += copies(row);
                return count;
            },
            [&](std::size_t total) { kept.resize(total); },
            [&](std::size_t begin, std::size_t end, std::size_t place) {
                for (std::size_t row = begin; row < end; ++row) {
                    for (std::size_t copy = 0; copy < copies(row); ++copy) kept[place++] = row;
                }
            });
        EXPECT_EQ(kept, expected) << rows;
    }
}

}  // namespace
