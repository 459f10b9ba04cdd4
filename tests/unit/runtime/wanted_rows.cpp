// Lists of wanted rows against a plain loop.
#include "runtime/wanted_rows.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "support/batches.hpp"

namespace th_test {
namespace {

using tensorhash::runtime::for_wanted_rows;

/// Of 16: how many rows are wanted.
void expect_wanted_rows_in_order(std::size_t begin, std::size_t end, std::uint64_t wanted_of_16) {
    Random random(end + wanted_of_16);
    std::vector<bool> wanted(end);
    std::vector<std::size_t> expected;
    for (std::size_t row = 0; row < end; ++row) {
        wanted[row] = random.below(16) < wanted_of_16;
        if (row >= begin && wanted[row]) expected.push_back(row);
    }
    auto const is_wanted = [&](std::size_t row) { return bool{wanted[row]}; };
    std::vector<std::size_t> fetched;
    std::vector<std::size_t> got;
    for_wanted_rows<32>(
        begin, end, is_wanted, [&](std::size_t row) { fetched.push_back(row); },
        [&](std::size_t row) { got.push_back(row); });
    EXPECT_EQ(got, expected);
    EXPECT_EQ(fetched, expected);
    got.clear();
    for_wanted_rows(begin, end, is_wanted, [&](std::size_t row) { got.push_back(row); });
    EXPECT_EQ(got, expected);
}

TEST(WantedRows, come_in_order_and_each_is_prefetched_once) {
    for (std::size_t const rows : {0u, 1u, 31u, 33u, 1023u, 1024u, 1025u, 5000u}) {
        for (std::uint64_t const wanted_of_16 : {0u, 1u, 8u, 16u}) {
            SCOPED_TRACE(rows);
            expect_wanted_rows_in_order(0, rows, wanted_of_16);
            expect_wanted_rows_in_order(rows / 3, rows, wanted_of_16);
        }
    }
}

}  // namespace
}  // namespace th_test
