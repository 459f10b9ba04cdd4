// Tensor: shapes, strides and ownership of memory.
#include "tensorhash/tensor.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>

#include "tensor/allocators.hpp"
#include "tensor/shapes.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash {
namespace {

/// Throws ValueError if the size in bytes does not fit in int64, the type of strides.
void require_addressable(Shape const& shape, Dtype dtype) {
    auto const most = std::numeric_limits<std::int64_t>::max();
    auto const width = static_cast<std::int64_t>(std::max<std::size_t>(byte_size(dtype), 1));
    if (num_elements(shape) > most / width) {
        throw ValueError("shape: expected at most 2^63 - 1 bytes, got " + to_string(shape) +
                         " of " + std::string(name(dtype)));
    }
}

[[noreturn]] void fail_no_memory(std::int64_t elements, Dtype dtype) {
    throw ValueError("data: expected memory for " + std::to_string(elements) + " elements of " +
                     std::string(name(dtype)) + ", got a null pointer");
}

}  // namespace

Tensor Tensor::empty(Shape shape, Dtype dtype, Device device) {
    Allocator& allocator = memory_of(device, "device");
    auto const bytes = static_cast<std::size_t>(num_elements(shape)) * byte_size(dtype);
    Allocation memory = allocator.allocate(bytes, device);
    return borrow(memory.data, std::move(shape), dtype, std::move(memory.owner), device);
}

Tensor Tensor::zeros(Shape shape, Dtype dtype, Device device) {
    Tensor tensor = empty(std::move(shape), dtype, device);
    memory_of(device, "device").zero(tensor.data(), tensor.bytes(), device);
    tensor.written_by(current_stream(device));
    return tensor;
}

Tensor Tensor::borrow(void* data, Shape shape, Dtype dtype, std::shared_ptr<void> owner,
                      Device device) {
    require_addressable(shape, dtype);
    Shape strides = contiguous_strides(shape, dtype);
    return borrow_strided(data, std::move(shape), std::move(strides), dtype, false,
                          std::move(owner), device);
}

Tensor Tensor::borrow(void const* data, Shape shape, Dtype dtype, std::shared_ptr<void> owner,
                      Device device) {
    Tensor tensor =
        borrow(const_cast<void*>(data), std::move(shape), dtype, std::move(owner), device);
    tensor.read_only_ = true;
    return tensor;
}

Tensor Tensor::borrow_strided(void* data, Shape shape, Shape byte_strides, Dtype dtype,
                              bool read_only, std::shared_ptr<void> owner, Device device) {
    if (shape.size() != byte_strides.size()) {
        throw ValueError("byte_strides: expected one for each of " + std::to_string(shape.size()) +
                         " dimensions, got " + std::to_string(byte_strides.size()));
    }
    if (byte_size(dtype) == 0) {
        throw TypeError("dtype: a tensor cannot be of undefined dtype");
    }
    std::int64_t const elements = num_elements(shape);  // throws on negative sizes and overflow
    if (data == nullptr && elements > 0) {
        fail_no_memory(elements, dtype);
    }
    Tensor tensor;
    tensor.data_ = data;
    tensor.shape_ = std::move(shape);
    tensor.byte_strides_ = std::move(byte_strides);
    tensor.owner_ = std::move(owner);
    tensor.device_ = device;
    tensor.dtype_ = dtype;
    tensor.read_only_ = read_only;
    return tensor;
}

Tensor Tensor::from_bytes(void const* data, std::size_t elements, Shape const& shape, Dtype dtype) {
    Shape const wanted = shape.empty() ? Shape{static_cast<std::int64_t>(elements)} : shape;
    if (num_elements(wanted) != static_cast<std::int64_t>(elements)) {
        throw ValueError("shape: " + to_string(wanted) + " does not hold " +
                         std::to_string(elements) + " elements");
    }
    Tensor tensor = empty(wanted, dtype);
    if (elements > 0) {
        std::memcpy(tensor.data(), data, tensor.bytes());
    }
    return tensor;
}

std::int64_t Tensor::size() const { return num_elements(shape_); }

bool Tensor::is_contiguous() const {
    if (size() == 0) {
        return true;
    }
    auto step = static_cast<std::int64_t>(byte_size(dtype_));
    for (std::size_t i = shape_.size(); i-- > 0;) {
        if (shape_[i] != 1 && byte_strides_[i] != step) {
            return false;
        }
        step *= shape_[i];
    }
    return true;
}

Tensor Tensor::contiguous() const { return is_contiguous() ? *this : clone(); }

Tensor Tensor::clone() const {
    Tensor copy = empty(shape_, dtype_, device_);
    Allocator& memory = memory_of(device_, "device");
    Stream const stream = current_stream(device_);
    wait_on(stream);
    if (is_contiguous()) {
        memory.copy(copy.data(), data_, bytes(), device_);
    } else {
        memory.copy_strided(copy.data(), data_, shape_, byte_strides_, byte_size(dtype_), device_);
    }
    read_by(stream);
    copy.written_by(stream);
    return copy;
}

Tensor Tensor::to(Device device) const {
    if (device == device_) {
        return *this;
    }
    if (device.type != device_.type && !device.is_cpu() && !device_.is_cpu()) {
        return to(Device{}).to(device);
    }
    Tensor copy = empty(shape_, dtype_, device);
    copy_to(copy.data(), device);
    copy.written_by(current_stream(device));
    return copy;
}

void Tensor::copy_to(void* to, Device device) const {
    Tensor const from = contiguous();
    // The copy runs on a stream of the device besides the CPU; of two, on the target's.
    Device const runs_on = device.is_cpu() ? device_ : device;
    Stream const stream = current_stream(runs_on);
    Allocator& memory = memory_of(runs_on, "device");
    from.wait_on(stream);
    if (device == device_) {
        memory.copy(to, from.data_, bytes(), device);
    } else {
        memory.copy_between(to, device, from.data_, device_, bytes());
    }
    from.read_by(stream);
}

Tensor Tensor::reshape(Shape shape) const {
    if (!is_contiguous()) {
        throw ValueError("reshape: the tensor is not contiguous; call contiguous() first");
    }
    if (num_elements(shape) != size()) {
        throw ValueError("shape: " + to_string(shape) + " does not hold the " +
                         std::to_string(size()) + " elements of " + to_string(shape_));
    }
    Tensor tensor = *this;
    tensor.byte_strides_ = contiguous_strides(shape, dtype_);
    tensor.shape_ = std::move(shape);
    return tensor;
}

Tensor Tensor::view(Shape shape, Shape byte_strides, std::int64_t byte_offset) const {
    std::int64_t const offset = num_elements(shape) == 0 ? 0 : byte_offset;
    Tensor made = borrow_strided(static_cast<unsigned char*>(data_) + offset, std::move(shape),
                                 std::move(byte_strides), dtype_, read_only_, owner_, device_);
    Extent const own = extent_of(shape_, byte_strides_, byte_size(dtype_));
    Extent const seen = extent_of(made.shape_, made.byte_strides_, byte_size(dtype_));
    if (offset + seen.low < own.low || offset + seen.high > own.high) {
        throw ValueError("view: expected elements of the tensor, its bytes " +
                         std::to_string(own.low) + " to " + std::to_string(own.high) + ", got " +
                         std::to_string(offset + seen.low) + " to " +
                         std::to_string(offset + seen.high));
    }
    made.work_ = work_;
    return made;
}

Tensor Tensor::as_read_only() const {
    Tensor tensor = *this;
    tensor.read_only_ = true;
    return tensor;
}

void Tensor::require_typed(Dtype wanted) const {
    require_host(device_, "tensor");
    if (dtype_ != wanted) {
        throw TypeError("tensor: expected elements of " + std::string(name(wanted)) + ", got " +
                        std::string(name(dtype_)));
    }
    if (!is_contiguous()) {
        throw ValueError("tensor: not contiguous; call contiguous() first");
    }
}

}  // namespace tensorhash
