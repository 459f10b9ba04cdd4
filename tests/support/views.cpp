#include "support/views.hpp"

#include "tensor/allocators.hpp"

namespace th_test {

void write_bytes(tensorhash::Tensor& view, std::size_t offset, void const* bytes,
                 std::size_t size) {
    tensorhash::Device const device = view.device();
    view.wait_on(tensorhash::current_stream(device));
    auto* const to = static_cast<unsigned char*>(view.data()) + offset;
    tensorhash::memory_of(device, "view").copy_between(to, device, bytes, {}, size);
    view.written_by(tensorhash::current_stream(device));
}

}  // namespace th_test
