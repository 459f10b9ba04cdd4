// The numbers of picked rows against a plain loop.
#include "tensor/row_numbers.hpp"

#include <algorithm>
#include <random>

#include "support/fixtures.hpp"

namespace {

using tensorhash::numbers_where;
using tensorhash::Tensor;

class RowNumbersOverThreads : public th_test::OverThreads {};
TH_OVER_THREADS(RowNumbersOverThreads);

template <class Number>
void expect_rows(std::vector<bool> const& picked) {
    std::vector<Number> expected;
    for (std::size_t row = 0; row < picked.size(); ++row) {
        if (picked[row]) expected.push_back(static_cast<Number>(row));
    }
    Tensor const found =
        numbers_where<Number>(picked.size(), [&](std::size_t row) { return picked[row]; });
    auto const got = found.as<Number>();
    EXPECT_EQ(found.rank(), 1u);
    EXPECT_TRUE(std::equal(got.begin(), got.end(), expected.begin(), expected.end()));
}

TEST_P(RowNumbersOverThreads, are_those_of_the_picked_rows_in_order) {
    std::mt19937 random(1);
    for (std::size_t const rows : {0u, 1u, 4095u, 50'000u}) {
        for (double const share : {0.0, 0.3, 1.0}) {
            std::bernoulli_distribution pick(share);
            std::vector<bool> picked(rows);
            std::generate(picked.begin(), picked.end(), [&] { return pick(random); });
            expect_rows<std::int32_t>(picked);
            expect_rows<std::int64_t>(picked);
        }
    }
}

}  // namespace
