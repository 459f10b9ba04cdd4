// Lives of device tables: seeded batches of all sizes, compared with the oracle after every call.
#pragma once

#include "device/core.hpp"
// The device's headers come first: they choose the form of the steps.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "device/seeds.hpp"
#include "device/test_queue.hpp"
#include "support/batches.hpp"
#include "support/oracle.hpp"

namespace th_test {

/// A copy of host memory on the device.
template <class T>
class OnDevice {
public:
    OnDevice(TestQueue& queue, std::uint64_t size) : array_(queue, size), queue_(&queue) {}
    OnDevice(TestQueue& queue, void const* from, std::uint64_t size) : OnDevice(queue, size) {
        queue.copy(array_.data(), from, array_.bytes(), tensorhash::device::Copy::In);
    }
    T* data() const { return array_.data(); }
    /// The first `size` elements; unwritten memory must not be read.
    std::vector<T> read(std::uint64_t size) const {
        std::vector<T> out(size);
        queue_->copy(out.data(), array_.data(), size * sizeof(T), tensorhash::device::Copy::Out);
        return out;
    }
    template <class As = T>
    std::vector<As> read() const {
        static_assert(sizeof(As) == sizeof(T) || sizeof(As) == 1);
        std::vector<As> out(array_.bytes() / sizeof(As));
        queue_->copy(out.data(), array_.data(), array_.bytes(), tensorhash::device::Copy::Out);
        return out;
    }

private:
    tensorhash::device::Array<TestQueue, T> array_;
    TestQueue* queue_;
};

inline tensorhash::step::KeyFormat format_of(Element const& key) {
    bool const is_float = key.dtype == Dtype::Float32 || key.dtype == Dtype::Float64;
    return {static_cast<std::uint32_t>(key.bytes()),
            is_float ? static_cast<std::uint32_t>(tensorhash::byte_size(key.dtype)) : 0};
}

/// Keys drawn from few: batches repeat themselves and each other.
inline Rows draw_keys(Element const& key, Random& random, std::size_t rows,
                      std::uint64_t distinct) {
    Rows out{key.bytes(), rows, std::string(rows * key.bytes(), '\0')};
    for (std::size_t row = 0; row < rows; ++row) {
        write_key(out.bytes.data() + row * out.width, out.width, random.below(distinct));
        make_legal(out.bytes.data() + row * out.width, out.width, key.dtype);
    }
    return out;
}

}  // namespace th_test
