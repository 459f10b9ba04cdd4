// Random maps and features for tests of convolutions, and the convolution as a triple loop in
// double. Beside each sum, the loop adds up magnitudes: rounding errors are a share of these.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tensorhash/conv.hpp"

namespace th_test::conv {

using tensorhash::Dtype;
using tensorhash::Shape;
using tensorhash::Tensor;
using tensorhash::coords::KernelMap;

struct MapSize {
    std::int64_t offsets;
    std::int64_t num_in;
    std::int64_t num_out;
    double density;  // of all possible pairs
};

/// Each pair with probability `density`, so an out row may have several in rows under an offset.
KernelMap random_map(MapSize const& size, unsigned seed);
/// A submanifold map: a line of voxels in random order. Each exists with probability 1/2.
KernelMap line_map(std::int64_t length, std::int64_t offsets, unsigned seed);

/// Normal numbers, rounded to the dtype.
Tensor random_tensor(Shape const& shape, Dtype dtype, unsigned seed);
/// The elements of a float tensor.
std::vector<double> numbers_of(Tensor const& tensor);

struct Sums {
    std::vector<double> values;
    std::vector<double> magnitudes;
};

/// The sizes of one test.
struct Case {
    KernelMap map;
    std::int64_t in;  // channels of all groups
    std::int64_t out;
    std::int64_t groups;
};

Sums forward_oracle(Case const& c, Tensor const& features, Tensor const& weight);
Sums input_oracle(Case const& c, Tensor const& gradient, Tensor const& weight);
Sums weight_oracle(Case const& c, Tensor const& features, Tensor const& gradient);

/// Every element within `relative` of its magnitude, plus the rounding of the dtype.
::testing::AssertionResult is_near(Tensor const& got, Sums const& want);

}  // namespace th_test::conv
