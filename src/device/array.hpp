// Array: device memory with an owner.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

namespace tensorhash::device {

/// `size` elements of a trivial type. Released in stream order.
template <class Queue, class T>
class Array {
public:
    Array() = default;
    /// Not initialised. Throws std::bad_alloc.
    Array(Queue& queue, std::uint64_t size)
        : queue_(&queue), size_(size),
          data_(static_cast<T*>(queue.allocate(std::max<std::uint64_t>(bytes(), 1)))) {}
    Array(Array&& other) noexcept
        : queue_(other.queue_), size_(other.size_), data_(std::exchange(other.data_, nullptr)) {}
    Array& operator=(Array&& other) noexcept {
        std::swap(queue_, other.queue_);
        std::swap(size_, other.size_);
        std::swap(data_, other.data_);
        return *this;
    }
    ~Array() {
        if (data_ != nullptr) {
            queue_->release(data_);
        }
    }

    static Array zeros(Queue& queue, std::uint64_t size) {
        Array array(queue, size);
        array.zero();
        return array;
    }
    void zero() { queue_->fill(data_, 0, bytes()); }

    T* data() const noexcept { return data_; }
    std::uint64_t size() const noexcept { return size_; }
    std::uint64_t bytes() const noexcept { return size_ * sizeof(T); }

private:
    Queue* queue_ = nullptr;
    std::uint64_t size_ = 0;
    T* data_ = nullptr;
};

}  // namespace tensorhash::device
