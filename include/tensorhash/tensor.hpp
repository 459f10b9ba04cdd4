// Tensor: an n-dimensional array that owns or borrows its memory. Tables take and return tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tensorhash/device.hpp"
#include "tensorhash/dtype.hpp"
#include "tensorhash/export.hpp"
#include "tensorhash/stream.hpp"

struct DLManagedTensor;
struct DLManagedTensorVersioned;

namespace tensorhash {

/// A handle: copies share the memory. Strides are in bytes and may be zero or negative. On a device
/// besides the CPU, work on a tensor is queued on this thread's current_stream(), after the work
/// that wrote the tensor.
class TH_API Tensor {
public:
    /// Undefined dtype, zero rows, no memory.
    Tensor() = default;

    /// Contiguous, uninitialised memory, aligned to 64 bytes.
    static Tensor empty(Shape shape, Dtype dtype, Device device = {});
    static Tensor zeros(Shape shape, Dtype dtype, Device device = {});

    /// Wraps memory of the caller. Every copy of the tensor holds `owner`. Const memory makes a
    /// read-only tensor. Throws ValueError if `data` is null and there are elements.
    static Tensor borrow(void* data, Shape shape, Dtype dtype, std::shared_ptr<void> owner = {},
                         Device device = {});
    static Tensor borrow(void const* data, Shape shape, Dtype dtype,
                         std::shared_ptr<void> owner = {}, Device device = {});
    /// The same with explicit strides in bytes.
    static Tensor borrow_strided(void* data, Shape shape, Shape byte_strides, Dtype dtype,
                                 bool read_only, std::shared_ptr<void> owner = {},
                                 Device device = {});

    /// A copy of `values`, one-dimensional unless a shape is given.
    template <HasDtype T>
    static Tensor from(std::vector<T> const& values, Shape const& shape = {}) {
        return from_bytes(values.data(), values.size(), shape, dtype_of<T>);
    }

    /// Takes ownership of the memory, with its strides and read-only flag. The producer keeps it if
    /// this throws TypeError, DeviceError or ValueError (null memory, invalid shape).
    static Tensor from_dlpack(DLManagedTensor* managed);
    static Tensor from_dlpack(DLManagedTensorVersioned* managed);
    /// Shares the memory until the consumer calls the deleter. Throws ValueError if a stride is not
    /// a multiple of the element size.
    DLManagedTensor* to_dlpack() const;
    DLManagedTensorVersioned* to_dlpack_versioned() const;

    void* data() noexcept { return data_; }
    void const* data() const noexcept { return data_; }
    /// The elements of a contiguous tensor of dtype T on the CPU. Throws TypeError, ValueError or
    /// DeviceError otherwise.
    /// The span is valid as long as the memory. Temporaries are refused: name the result first, as
    /// in `auto const found = map.find(keys);`.
    template <HasDtype T>
    std::span<T const> as() const& {
        require_typed(dtype_of<T>);
        return {static_cast<T const*>(data_), static_cast<std::size_t>(size())};
    }
    template <class T>
    std::span<T const> as() const&& = delete;
    template <HasDtype T>
    std::span<T> as_mutable() & {
        require_typed(dtype_of<T>);
        return {static_cast<T*>(data_), static_cast<std::size_t>(size())};
    }
    template <class T>
    std::span<T> as_mutable() && = delete;

    Shape const& shape() const noexcept { return shape_; }
    Shape const& byte_strides() const noexcept { return byte_strides_; }
    Dtype dtype() const noexcept { return dtype_; }
    Device device() const noexcept { return device_; }
    bool read_only() const noexcept { return read_only_; }
    int rank() const noexcept { return static_cast<int>(shape_.size()); }
    /// The number of elements.
    std::int64_t size() const;
    std::size_t bytes() const { return static_cast<std::size_t>(size()) * byte_size(dtype_); }
    bool is_contiguous() const;
    std::shared_ptr<void> const& owner() const noexcept { return owner_; }

    /// This tensor if it is on `device`, else a contiguous copy there. A copy on the CPU is done
    /// when this returns.
    Tensor to(Device device) const;
    /// Copies the elements in C order to memory of `device`, the CPU or a device of the same type.
    /// A copy to the CPU is done when this returns; else the current stream of `device` makes it.
    void copy_to(void* to, Device device) const;
    /// This tensor if it is contiguous, else a contiguous copy.
    Tensor contiguous() const;
    /// An independent copy, contiguous and writable.
    Tensor clone() const;
    /// The same memory with another shape of the same size. Throws ValueError unless contiguous.
    Tensor reshape(Shape shape) const;
    /// A view of elements of this tensor, strides and offset in bytes. Throws ValueError if some
    /// are outside of it.
    Tensor view(Shape shape, Shape byte_strides, std::int64_t byte_offset) const;
    /// The same memory, marked read-only for the frameworks that support this.
    Tensor as_read_only() const;

    /// Says that the work which `stream` has so far writes this memory. Copies of this tensor and
    /// views of it know that too, if they were made after the first such call. Without it, as on
    /// the CPU, the memory is ready.
    void written_by(Stream stream);
    /// Makes later work of `stream` wait until this tensor is written.
    void wait_on(Stream stream) const;
    /// Makes later work of `stream`, which writes this tensor, wait until all work so far has
    /// written and read it.
    void wait_to_write(Stream stream) const;
    /// Says that the work which `stream` has so far reads this tensor: the memory is freed after
    /// this work, whichever thread drops the last copy.
    void read_by(Stream stream) const;

private:
    static Tensor from_bytes(void const* data, std::size_t elements, Shape const& shape,
                             Dtype dtype);
    void require_typed(Dtype wanted) const;

    class Work;

    void* data_ = nullptr;
    Shape shape_{0};
    Shape byte_strides_{0};
    std::shared_ptr<void> owner_;
    std::shared_ptr<Work> work_;  // null if the memory is ready
    Device device_;
    Dtype dtype_ = Dtype::Undefined;
    bool read_only_ = false;
};

}  // namespace tensorhash
