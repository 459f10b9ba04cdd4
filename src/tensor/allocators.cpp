// The CPU's allocator, and the table of allocators.
#include "tensor/allocators.hpp"

#include "runtime/memory.hpp"
#include "tensor/copy.hpp"

namespace tensorhash {
namespace {

class CpuAllocator final : public Allocator {
public:
    Allocation allocate(std::size_t bytes, Device) override {
        auto block = runtime::make_shared_block(bytes, runtime::Fill::None);
        void* const data = block->data();
        return {data, std::move(block)};
    }
    void zero(void* data, std::size_t bytes, Device) override { runtime::zero_bytes(data, bytes); }
    void copy(void* to, void const* from, std::size_t bytes, Device) override {
        runtime::copy_bytes(to, from, bytes);
    }
    void copy_strided(void* to, void const* from, Shape const& shape, Shape const& byte_strides,
                      std::size_t element_bytes, Device) override {
        gather_strided(to, from, shape, byte_strides, element_bytes);
    }
};

// Constant-initialised, because a tensor may be a global variable of the program.
constinit CpuAllocator cpu_allocator;

}  // namespace

constinit std::array<std::atomic<Allocator*>, 2> allocators{&cpu_allocator, nullptr};

}  // namespace tensorhash
