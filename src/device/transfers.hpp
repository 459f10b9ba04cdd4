// Single values between host and device, and arrays of host numbers on the device.
#pragma once

#include <cstdint>
#include <vector>

#include "device/array.hpp"
#include "device/queue.hpp"

namespace tensorhash::device {

/// A copy of host numbers on the device.
template <class Queue, class T>
Array<Queue, T> upload(Queue& queue, std::vector<T> const& numbers) {
    Array<Queue, T> array(queue, numbers.size());
    queue.copy(array.data(), numbers.data(), array.bytes(), Copy::In);
    return array;
}

template <class Queue, class T>
void write_one(Queue& queue, T* to, T const& value) {
    queue.copy(to, &value, sizeof value, Copy::In);
}

/// Waits.
template <class Queue, class T>
T read_one(Queue& queue, T const* from) {
    T value{};
    queue.read_back(&value, from, sizeof value);
    return value;
}

/// One word on the device that says where something is: kNoElement at first.
template <class Queue>
class FirstFound {
public:
    explicit FirstFound(Queue& queue) : queue_(&queue), word_(queue, 1) {
        queue.fill(word_.data(), 0xff, word_.bytes());  // kNoElement
    }
    std::uint64_t* data() const noexcept { return word_.data(); }
    /// Waits.
    std::uint64_t read() const { return read_one(*queue_, word_.data()); }

private:
    Queue* queue_;
    Array<Queue, std::uint64_t> word_;
};

}  // namespace tensorhash::device
