// The same coordinate call on the CPU's back end and on a device's, and their results side by side.
#pragma once

#include "device/coords.hpp"
// The device's headers come first: they choose the form of the steps.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "device/lives.hpp"
#include "device/tensors_on_queue.hpp"
#include "table/cpu_coords.hpp"

namespace th_test {

using tensorhash::Shape;
using tensorhash::Tensor;
using tensorhash::backend::CoordRows;

inline std::int64_t between(Random& random, std::int64_t low, std::int64_t high) {
    return low +
           static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(high - low + 1)));
}

/// One array in host memory and one with the same numbers on the device.
struct TwinTensor {
    Tensor cpu;
    Tensor device;
};
struct TwinRows {
    CoordRows cpu;
    CoordRows device;
};

struct CoordTwins {
    TestQueue queue;
    TensorsOnQueue tensors;
    tensorhash::device::Coords<TestQueue> device;
    tensorhash::backend::CoordsBackend const& cpu = tensorhash::backend::cpu_coords();

    explicit CoordTwins(std::uint64_t seed,
                        std::uint64_t map_limit = tensorhash::device::Coords<TestQueue>::kMapLimit)
        : queue({.seed = seed}), tensors(queue), device(queue, TensorsOnQueue::kDevice, map_limit) {
    }

    template <class T>
    TwinTensor tensor(std::vector<T> const& numbers, Shape const& shape, Dtype dtype) {
        TwinTensor twin{Tensor::empty(shape, dtype),
                        Tensor::empty(shape, dtype, TensorsOnQueue::kDevice)};
        std::copy_n(reinterpret_cast<unsigned char const*>(numbers.data()), twin.cpu.bytes(),
                    static_cast<unsigned char*>(twin.cpu.data()));
        queue.copy(twin.device.data(), numbers.data(), twin.device.bytes(),
                   tensorhash::device::Copy::In);
        return twin;
    }

    /// int32 rows, or int64 ones.
    TwinRows rows(std::vector<std::int64_t> const& numbers, std::uint32_t columns, bool wide) {
        std::size_t const count = numbers.size() / columns;
        Shape const shape{static_cast<std::int64_t>(count), columns};
        std::vector<std::int32_t> const narrow(numbers.begin(), numbers.end());
        TwinTensor const twin =
            wide ? tensor(numbers, shape, Dtype::Int64) : tensor(narrow, shape, Dtype::Int32);
        return {{twin.cpu, count, columns}, {twin.device, count, columns}};
    }

    void expect_same(Tensor const& on_device, Tensor const& on_cpu, std::string const& what) {
        EXPECT_EQ(on_device.shape(), on_cpu.shape()) << what;
        EXPECT_EQ(on_device.dtype(), on_cpu.dtype()) << what;
        EXPECT_EQ(on_device.device(), TensorsOnQueue::kDevice) << what;
        if (on_device.bytes() == on_cpu.bytes()) {
            auto const* const bytes = static_cast<unsigned char const*>(on_cpu.data());
            EXPECT_TRUE(tensors.read<unsigned char>(on_device) ==
                        std::vector<unsigned char>(bytes, bytes + on_cpu.bytes()))
                << what;
        }
    }
};

/// The sentence of the error that a call throws; empty if it throws none.
inline std::string error_of(std::function<void()> const& call) {
    try {
        call();
    } catch (std::exception const& error) {
        return error.what();
    }
    return {};
}

}  // namespace th_test
