// The CPU's allocator: cached blocks, and copies on all threads.
#include "tensor/cpu_allocator.hpp"

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

constinit CpuAllocator the_allocator;

}  // namespace

Allocator& cpu_allocator() noexcept { return the_allocator; }

}  // namespace tensorhash
