// Tensors get their memory from the allocator of their device.
#include "tensor/allocators.hpp"

#include <cstring>
#include <vector>

#include "support/fixtures.hpp"
#include "tensor/copy.hpp"

namespace th_test {
namespace {

using tensorhash::Allocation;
using tensorhash::Device;

/// An allocator in host memory that records its calls.
class Remembering final : public tensorhash::Allocator {
public:
    Allocation allocate(std::size_t bytes, Device device) override {
        calls.push_back("allocate " + std::to_string(bytes) + " on " + to_string(device));
        auto memory = std::make_shared<std::vector<unsigned char>>(bytes, 0xab);
        return {memory->data(), memory};
    }
    void zero(void* data, std::size_t bytes, Device) override {
        calls.push_back("zero");
        std::memset(data, 0, bytes);
    }
    void copy(void* to, void const* from, std::size_t bytes, Device) override {
        calls.push_back("copy");
        std::memcpy(to, from, bytes);
    }
    void copy_strided(void* to, void const* from, Shape const& shape, Shape const& strides,
                      std::size_t element_bytes, Device) override {
        calls.push_back("copy_strided");
        tensorhash::gather_strided(to, from, shape, strides, element_bytes);
    }
    void copy_between(void* to, Device, void const* from, Device, std::size_t bytes) override {
        calls.push_back("copy_between");
        std::memcpy(to, from, bytes);
    }
    tensorhash::Event record(tensorhash::Stream) override { return {}; }
    void wait(tensorhash::Stream, tensorhash::Event const&) override {}
    void synchronize(tensorhash::Stream) override {}
    int device_count() noexcept override { return 2; }
    void check(Device) override {}

    std::vector<std::string> calls;
};

/// Registers an allocator, and removes it at the end.
struct Loaded {
    explicit Loaded(tensorhash::Allocator& allocator) {
        tensorhash::set_allocator(Device::Type::Cuda, &allocator);
    }
    ~Loaded() { tensorhash::set_allocator(Device::Type::Cuda, nullptr); }
};

TEST(Allocators, a_loaded_device_provides_the_memory_of_tensors) {
    Device const device{Device::Type::Cuda, 1};
    Remembering allocator;
    {
        Loaded const loaded(allocator);
        Tensor const zeros = Tensor::zeros({2, 3}, Dtype::Int32, device);
        EXPECT_EQ(zeros.device(), device);
        EXPECT_EQ(static_cast<std::int32_t const*>(zeros.data())[5], 0);
        EXPECT_EQ(zeros.clone().device(), device);
        Tensor const columns = Tensor::borrow_strided(const_cast<void*>(zeros.data()), {3, 2},
                                                      {4, 12}, Dtype::Int32, true, {}, device);
        EXPECT_EQ(columns.contiguous().shape(), (Shape{3, 2}));
    }
    EXPECT_EQ(allocator.calls,
              (std::vector<std::string>{"allocate 24 on cuda:1", "zero", "allocate 24 on cuda:1",
                                        "copy", "allocate 24 on cuda:1", "copy_strided"}));
    EXPECT_THROW(Tensor::empty({1}, Dtype::Int32, device), tensorhash::DeviceError);
}

}  // namespace
}  // namespace th_test
