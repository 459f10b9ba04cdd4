// What the tests of coordinates share: rows of random numbers, and a dictionary as the oracle.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "contract/support.hpp"
#include "tensorhash/tensor.hpp"

namespace th_test {

using Coord = std::vector<std::int64_t>;
using Coords = std::vector<Coord>;

/// `count` rows: a batch from 0 to batches - 1, then axes from low to high.
inline Coords random_rows(std::size_t count, std::size_t columns, std::int64_t low,
                          std::int64_t high, unsigned seed, std::int64_t batches = 3) {
    std::mt19937_64 random(seed);
    std::uniform_int_distribution<std::int64_t> axis(low, high);
    std::uniform_int_distribution<std::int64_t> batch(0, batches - 1);
    Coords rows(count, Coord(columns));
    for (Coord& row : rows) {
        row[0] = batch(random);
        for (std::size_t c = 1; c < columns; ++c) row[c] = axis(random);
    }
    return rows;
}

/// [rows, columns] of Int.
template <class Int>
Tensor tensor_of(Coords const& rows, std::size_t columns) {
    std::vector<Int> flat;
    for (Coord const& row : rows) {
        for (std::int64_t const value : row) flat.push_back(static_cast<Int>(value));
    }
    if (flat.empty())
        return Tensor::empty({0, static_cast<std::int64_t>(columns)}, tensorhash::dtype_of<Int>);
    return Tensor::from(
        flat, {static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(columns)});
}

/// Coord -> the first number it was inserted with.
class RowOracle {
public:
    void insert(Coords const& rows) {
        for (Coord const& row : rows) first_.try_emplace(row, next_++);
    }
    std::vector<std::int32_t> find(Coords const& rows) const {
        std::vector<std::int32_t> found;
        for (Coord const& row : rows) {
            auto const at = first_.find(row);
            found.push_back(at == first_.end() ? -1 : at->second);
        }
        return found;
    }
    std::size_t distinct() const { return first_.size(); }

private:
    std::map<Coord, std::int32_t> first_;
    std::int32_t next_ = 0;
};

/// Instances named threads1, threads2, threads8.
inline std::string thread_name(::testing::TestParamInfo<int> const& info) {
    return "threads" + std::to_string(info.param);
}

class OverThreads : public ::testing::TestWithParam<int> {
protected:
    OverThreads() : threads_(GetParam()) {}

private:
    Threads threads_;
};

#define TH_OVER_THREADS(suite)                                                            \
    INSTANTIATE_TEST_SUITE_P(Threads, suite, ::testing::ValuesIn(th_test::thread_counts), \
                             th_test::thread_name)

}  // namespace th_test
