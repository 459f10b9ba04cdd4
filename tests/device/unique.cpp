// unique() on fibers against a plain loop.
#include "device/unique.hpp"
// The device's headers come first: they choose the form of the steps.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "device/lives.hpp"

namespace th_test {
namespace {

using tensorhash::Unique;

std::vector<std::int64_t> numbers_of(Tensor const& tensor) {
    auto const* const begin = static_cast<std::int64_t const*>(tensor.data());
    return {begin, begin + tensor.bytes() / sizeof(std::int64_t)};
}

TEST(DeviceUnique, finds_the_distinct_rows_in_order_of_first_occurrence) {
    for (std::uint64_t seed = 1; seed <= seeds(2); ++seed) {
        for (Element const& element : {Element{Dtype::Int32, {}}, Element{Dtype::Float64, {2}}}) {
            Random random(seed);
            FiberQueue queue({.seed = seed});
            Rows const given = draw_keys(element, random, 600, 350);
            std::map<std::string, std::int64_t> place;
            std::vector<std::int64_t> index, inverse, counts;
            std::string rows;
            for (std::size_t i = 0; i < given.count; ++i) {
                auto const [at, is_new] =
                    place.try_emplace(canonical(given[i], element.dtype), index.size());
                if (is_new) {
                    index.push_back(static_cast<std::int64_t>(i));
                    counts.push_back(0);
                    rows += given[i];
                }
                inverse.push_back(at->second);
                ++counts[static_cast<std::size_t>(at->second)];
            }
            OnDevice<unsigned char> const keys(queue, given.bytes.data(), given.bytes.size());
            Unique const got = tensorhash::device::unique_rows(queue, {keys.data(), given.count},
                                                               element, {}, tensorhash::Device{});
            EXPECT_EQ(std::string(static_cast<char const*>(got.rows.data()), got.rows.bytes()),
                      rows);
            EXPECT_EQ(numbers_of(got.index), index);
            EXPECT_EQ(numbers_of(got.inverse), inverse);
            EXPECT_EQ(numbers_of(got.counts), counts);
            EXPECT_EQ(queue.read_backs, 1u);
        }
    }
}

TEST(DeviceUnique, computes_only_what_is_asked) {
    FiberQueue queue;
    std::vector<std::int64_t> const given{5, 5, 7};
    OnDevice<unsigned char> const keys(queue, given.data(), 24);
    Unique const got = tensorhash::device::unique_rows(queue, {keys.data(), 3}, {Dtype::Int64, {}},
                                                       {false, true, false}, tensorhash::Device{});
    EXPECT_EQ(numbers_of(got.inverse), (std::vector<std::int64_t>{0, 0, 1}));
    EXPECT_EQ(got.index.bytes() + got.counts.bytes(), 0u);
}

}  // namespace
}  // namespace th_test
