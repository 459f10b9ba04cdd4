// Distinct rows, collected chunk by chunk as expansion does it.
#include "coords/rows/distinct_rows.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace th_test {
namespace {

using tensorhash::Dtype;
using tensorhash::coords::DistinctRows;

TEST(DistinctRows, a_table_is_at_most_half_full_when_it_is_queried) {
    for (std::size_t columns : {2u, 4u, 7u}) {
        DistinctRows distinct(Dtype::Int32, columns);
        std::int32_t next = 0;
        double fullest = 0;
        for (int chunk = 0; chunk < 60; ++chunk) {
            std::vector<std::int32_t> rows(columns * 997);
            std::iota(rows.begin(), rows.end(), next);
            next += static_cast<std::int32_t>(rows.size());
            distinct.add(rows.data(), 997);
            distinct.add(rows.data(), 0);  // as the next chunk would begin
            fullest = std::max(fullest, distinct.load());
        }
        EXPECT_LE(fullest, 0.5) << columns;
        EXPECT_GT(fullest, 0.35) << columns << ": it should not be far emptier either";
    }
}

}  // namespace
}  // namespace th_test
