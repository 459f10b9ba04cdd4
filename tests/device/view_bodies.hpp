// A body that finds keys by a table's view, and the keys that it is compiled for.
#pragma once

#include "device/grid.hpp"
// The device's headers come first: they choose the form of the steps.
#include <array>
#include <cstdint>

#include "tensorhash/device_view.hpp"

namespace th_test {

struct Voxel3 {
    std::int32_t x, y, z;
};

template <class Key>
struct FindByView {
    using Shared = tensorhash::device::NoShared;
    tensorhash::TableView<Key> view;
    Key const* keys;
    std::int32_t* indices;
    std::uint32_t rows;

    TH_STEP void operator()(Shared&) const {
        using tensorhash::device::Thread;
        // A lambda with this much code would not be inlined, and the interpreter has no calls.
        for (std::uint64_t row = Thread::in_grid(); row < rows; row += Thread::grid_size()) {
            indices[row] = view.find(keys[row]);
        }
    }
};

// One per reader, and one per way to write a key.
#define TH_FOR_EACH_VIEWED_KEY(Use)                                                           \
    Use(std::int64_t) Use(std::uint32_t) Use(float) Use(bool) Use(Voxel3)                     \
        Use(std::array<std::int32_t, 4>) Use(std::array<float, 3>) Use(std::array<double, 3>) \
            Use(std::array<std::uint8_t, 6>) Use(std::array<std::uint8_t, 21>)

}  // namespace th_test
