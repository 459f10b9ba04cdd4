// An n-dimensional array that owns its memory or borrows somebody's: what goes into a table and what comes out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tensorhash/device.hpp"
#include "tensorhash/dtype.hpp"
#include "tensorhash/export.hpp"

struct DLManagedTensor;
struct DLManagedTensorVersioned;

namespace tensorhash {

/// A handle: copies share the memory. Strides are in bytes, may be zero or negative.
class TH_API Tensor {
public:
    /// No dtype, no memory, zero rows.
    Tensor() = default;

    /// Uninitialised memory, contiguous, 64-byte aligned.
    static Tensor empty(Shape shape, Dtype dtype, Device device = {});
    static Tensor zeros(Shape shape, Dtype dtype, Device device = {});

    /// Memory that somebody else owns; `owner` is held as long as any copy of the tensor lives.
    /// ValueError if `data` is null and there are elements.
    static Tensor borrow(void* data, Shape shape, Dtype dtype, std::shared_ptr<void> owner = {},
                         Device device = {});
    static Tensor borrow(void const* data, Shape shape, Dtype dtype,
                         std::shared_ptr<void> owner = {}, Device device = {});
    /// The same with byte strides of the caller's.
    static Tensor borrow_strided(void* data, Shape shape, Shape byte_strides, Dtype dtype,
                                 bool read_only, std::shared_ptr<void> owner = {},
                                 Device device = {});

    /// A copy of `values`; without a shape, one dimension.
    template <HasDtype T>
    static Tensor from(std::vector<T> const& values, Shape const& shape = {}) {
        return from_bytes(values.data(), values.size(), shape, dtype_of<T>);
    }

    /// Takes the memory over, strides and read-only flag kept. The producer keeps it if this throws
    /// TypeError, DeviceError, or ValueError (null memory, shapes that cannot be).
    static Tensor from_dlpack(DLManagedTensor* managed);
    static Tensor from_dlpack(DLManagedTensorVersioned* managed);
    /// Shares the memory; the consumer calls the deleter. Throws ValueError if byte strides are not whole elements.
    DLManagedTensor* to_dlpack() const;
    DLManagedTensorVersioned* to_dlpack_versioned() const;

    void* data() noexcept { return data_; }
    void const* data() const noexcept { return data_; }
    /// The elements of a contiguous tensor of dtype T; throws TypeError or ValueError otherwise.
    /// The span lives as long as the memory. So a temporary has no span: name the result first,
    /// `auto const found = map.find(keys);`.
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
    /// Elements in all.
    std::int64_t size() const;
    std::size_t bytes() const { return static_cast<std::size_t>(size()) * byte_size(dtype_); }
    bool is_contiguous() const;
    std::shared_ptr<void> const& owner() const noexcept { return owner_; }

    /// Itself if contiguous, else a contiguous copy, made in parallel.
    Tensor contiguous() const;
    /// A contiguous copy of its own, writable.
    Tensor clone() const;
    /// The same memory under another shape of as many elements; contiguous tensors only.
    Tensor reshape(Shape shape) const;
    /// The same memory, marked so that writers are refused where the framework can.
    Tensor as_read_only() const;

private:
    static Tensor from_bytes(void const* data, std::size_t elements, Shape const& shape,
                             Dtype dtype);
    void require_typed(Dtype wanted) const;

    void* data_ = nullptr;
    Shape shape_{0};
    Shape byte_strides_{0};
    std::shared_ptr<void> owner_;
    Device device_;
    Dtype dtype_ = Dtype::Undefined;
    bool read_only_ = false;
};

}  // namespace tensorhash
