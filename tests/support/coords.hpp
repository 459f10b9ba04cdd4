// Shared by the tests of coordinates: random rows, and a dictionary as the oracle.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "support/device.hpp"
#include "support/fixtures.hpp"
#include "tensorhash/tensor.hpp"

namespace th_test {

using Coord = std::vector<std::int64_t>;
using Coords = std::vector<Coord>;

/// `count` rows: a batch index from 0 to batches - 1, then axes from low to high.
Coords random_rows(std::size_t count, std::size_t columns, std::int64_t low, std::int64_t high,
                   unsigned seed, std::int64_t batches = 3);

/// A tensor on the device under test.
inline Tensor on_test_device(Tensor const& tensor) { return tensor.to(test_device()); }

/// A tensor of Int with shape [rows, columns], on the device under test.
template <class Int>
Tensor tensor_of(Coords const& rows, std::size_t columns) {
    std::vector<Int> flat;
    for (Coord const& row : rows) {
        for (std::int64_t const value : row) flat.push_back(static_cast<Int>(value));
    }
    if (flat.empty())
        return Tensor::empty({0, static_cast<std::int64_t>(columns)}, tensorhash::dtype_of<Int>,
                             test_device());
    return on_test_device(Tensor::from(
        flat, {static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(columns)}));
}

/// Maps each coordinate to the first row that inserted it.
class RowOracle {
public:
    void insert(Coords const& rows);
    std::vector<std::int32_t> find(Coords const& rows) const;
    std::size_t distinct() const { return first_.size(); }

private:
    std::map<Coord, std::int32_t> first_;
    std::int32_t next_ = 0;
};

}  // namespace th_test
