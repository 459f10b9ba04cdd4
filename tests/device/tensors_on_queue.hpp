// Tensors on "cuda:0" get memory of a queue while a TensorsOnQueue lives.
#pragma once

#include <cstring>
#include <memory>
#include <stdexcept>
#include <vector>

#include "device/test_queue.hpp"
#include "tensor/allocators.hpp"
#include "tensorhash/tensor.hpp"

namespace th_test {

class TensorsOnQueue final : public tensorhash::Allocator {
public:
    static constexpr tensorhash::Device kDevice{tensorhash::Device::Type::Cuda, 0};

    explicit TensorsOnQueue(TestQueue& queue) : queue_(queue) {
        tensorhash::set_allocator(kDevice.type, this);
    }
    ~TensorsOnQueue() { tensorhash::set_allocator(kDevice.type, nullptr); }
    TensorsOnQueue(TensorsOnQueue const&) = delete;
    TensorsOnQueue& operator=(TensorsOnQueue const&) = delete;

    template <class T>
    std::vector<T> read(tensorhash::Tensor const& tensor) {
        std::vector<T> out(tensor.bytes() / sizeof(T));
        queue_.copy(out.data(), tensor.data(), tensor.bytes(), tensorhash::device::Copy::Out);
        return out;
    }

    tensorhash::Allocation allocate(std::size_t bytes, tensorhash::Device) override {
        void* const memory = queue_.allocate(bytes);
        TestQueue& queue = queue_;
        return {memory, std::shared_ptr<void>(memory, [&queue](void* p) { queue.release(p); })};
    }
    void zero(void* data, std::size_t bytes, tensorhash::Device) override {
        queue_.fill(data, 0, bytes);
    }
    void copy(void* to, void const* from, std::size_t bytes, tensorhash::Device) override {
        queue_.copy(to, from, bytes, tensorhash::device::Copy::Within);
    }
    void copy_strided(void*, void const*, tensorhash::Shape const&, tensorhash::Shape const&,
                      std::size_t, tensorhash::Device) override {
        throw std::logic_error("no test here copies strided tensors");
    }
    void copy_between(void*, tensorhash::Device, void const*, tensorhash::Device,
                      std::size_t) override {
        throw std::logic_error("no test here copies tensors between devices");
    }
    // The queue of a test has one stream, and work runs at once.
    tensorhash::Event record(tensorhash::Stream) override { return {}; }
    void wait(tensorhash::Stream, tensorhash::Event const&) override {}
    void synchronize(tensorhash::Stream) override {}
    int device_count() noexcept override { return 1; }
    void check(tensorhash::Device) override {}

private:
    TestQueue& queue_;
};

}  // namespace th_test
