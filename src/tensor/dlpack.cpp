// DLPack import and export: ownership moves, no data is copied.
#include "tensorhash/dlpack.hpp"

#include <memory>
#include <string>
#include <vector>

#include "tensor/shapes.hpp"
#include "tensorhash/error.hpp"
#include "tensorhash/tensor.hpp"

namespace tensorhash {
namespace {

struct DtypeCode {
    Dtype dtype;
    std::uint8_t code;
    std::uint8_t bits;
};

constexpr DtypeCode kCodes[] = {
    {Dtype::Bool, kDLBool, 8},        {Dtype::Int8, kDLInt, 8},
    {Dtype::Int16, kDLInt, 16},       {Dtype::Int32, kDLInt, 32},
    {Dtype::Int64, kDLInt, 64},       {Dtype::UInt8, kDLUInt, 8},
    {Dtype::UInt16, kDLUInt, 16},     {Dtype::UInt32, kDLUInt, 32},
    {Dtype::UInt64, kDLUInt, 64},     {Dtype::Float16, kDLFloat, 16},
    {Dtype::BFloat16, kDLBfloat, 16}, {Dtype::Float32, kDLFloat, 32},
    {Dtype::Float64, kDLFloat, 64},
};

Dtype from_dlpack_dtype(DLDataType type) {
    for (DtypeCode const& known : kCodes) {
        if (known.code == type.code && known.bits == type.bits && type.lanes == 1) {
            return known.dtype;
        }
    }
    throw TypeError(
        "dlpack: expected bool, an integer or a float of at most 64 bits, got type code " +
        std::to_string(type.code) + " of " + std::to_string(type.bits) + " bits and " +
        std::to_string(type.lanes) + " lanes");
}

DLDataType to_dlpack_dtype(Dtype dtype) {
    for (DtypeCode const& known : kCodes) {
        if (known.dtype == dtype) {
            return {known.code, known.bits, 1};
        }
    }
    throw TypeError("dlpack: a tensor of undefined dtype cannot be exported");
}

Device from_dlpack_device(DLDevice device) {
    switch (device.device_type) {
        case kDLCPU:
        case kDLCUDAHost:  // pinned host memory
            return {Device::Type::Cpu, 0};
        case kDLCUDA:
            return {Device::Type::Cuda, device.device_id};
        case kDLExtDev:  // an emulated device, if a plugin has one
            if (device_count(Device::Type::Emulated) > 0) {
                return {Device::Type::Emulated, device.device_id};
            }
            break;
    }
    throw DeviceError("dlpack: expected CPU or CUDA memory, got device type " +
                      std::to_string(device.device_type));
}

/// The shape, checked before it is used in any computation.
Shape from_dlpack_shape(DLTensor const& dl, Dtype dtype) {
    if (dl.ndim < 0 || (dl.ndim > 0 && dl.shape == nullptr)) {
        throw ValueError("dlpack: expected a shape with 0 or more dimensions, got " +
                         std::to_string(dl.ndim) +
                         (dl.shape == nullptr ? " and a null shape" : ""));
    }
    Shape shape(dl.shape, dl.shape + dl.ndim);
    std::int64_t const elements = num_elements(shape);  // throws on negative sizes and overflow
    if (dl.data == nullptr && elements > 0) {
        throw ValueError("dlpack: expected memory for " + std::to_string(elements) +
                         " elements of " + std::string(name(dtype)) +
                         ", got a null pointer: the array was freed, or never had memory, "
                         "such as a fake tensor");
    }
    return shape;
}

/// Strides in bytes. Throws ValueError if one does not fit in 64 bits.
Shape from_dlpack_strides(DLTensor const& dl, Shape const& shape, Dtype dtype) {
    if (dl.strides == nullptr) {
        return contiguous_strides(shape, dtype);
    }
    Shape strides(shape.size());
    auto const bytes = static_cast<std::int64_t>(byte_size(dtype));
    for (std::size_t i = 0; i < shape.size(); ++i) {
        std::int64_t const stride = dl.strides[i];
        if (__builtin_mul_overflow(stride, bytes, &strides[i])) {
            throw ValueError("dlpack: expected byte strides that fit in 64 bits, got a stride of " +
                             std::to_string(stride) + " elements in dimension " +
                             std::to_string(i));
        }
    }
    return strides;
}

template <class Managed>
Tensor import(Managed* managed, bool read_only) {
    DLTensor const& dl = managed->dl_tensor;
    Dtype const dtype = from_dlpack_dtype(dl.dtype);
    Device const device = from_dlpack_device(dl.device);
    Shape shape = from_dlpack_shape(dl, dtype);
    Shape strides = from_dlpack_strides(dl, shape, dtype);
    auto* const data = static_cast<unsigned char*>(dl.data) + dl.byte_offset;
    // Built without an owner first: if anything throws, the producer still owns its memory.
    Tensor tensor = Tensor::borrow_strided(data, shape, strides, dtype, read_only, {}, device);
    std::shared_ptr<void> owner(managed, [](void* p) {
        auto* m = static_cast<Managed*>(p);
        if (m->deleter != nullptr) {
            m->deleter(m);
        }
    });
    return Tensor::borrow_strided(data, std::move(shape), std::move(strides), dtype, read_only,
                                  std::move(owner), device);
}

/// What an exported tensor keeps alive.
template <class Managed>
struct Exported {
    Managed managed{};
    Tensor tensor;
    Shape element_strides;
};

template <class Managed>
Managed* make_export(Tensor const& tensor) {
    auto exported = std::make_unique<Exported<Managed>>();
    exported->tensor = tensor;
    auto const bytes = static_cast<std::int64_t>(byte_size(tensor.dtype()));
    for (std::size_t i = 0; i < tensor.shape().size(); ++i) {
        std::int64_t const stride = tensor.byte_strides()[i];
        if (bytes != 0 && stride % bytes != 0) {
            throw ValueError("dlpack: expected strides of whole elements of " +
                             std::to_string(bytes) + " bytes, got a stride of " +
                             std::to_string(stride) + " bytes in dimension " + std::to_string(i));
        }
        exported->element_strides.push_back(bytes == 0 ? 0 : stride / bytes);
    }
    DLTensor& dl = exported->managed.dl_tensor;
    dl.data = const_cast<void*>(tensor.data());
    dl.device = {static_cast<DLDeviceType>(tensor.device().type), tensor.device().id};
    dl.ndim = tensor.rank();
    dl.dtype = to_dlpack_dtype(tensor.dtype());
    dl.shape = const_cast<std::int64_t*>(exported->tensor.shape().data());
    dl.strides = exported->element_strides.data();
    dl.byte_offset = 0;
    exported->managed.manager_ctx = exported.get();
    exported->managed.deleter = [](Managed* self) {
        delete static_cast<Exported<Managed>*>(self->manager_ctx);
    };
    return &exported.release()->managed;
}

}  // namespace

Tensor Tensor::from_dlpack(DLManagedTensor* managed) { return import(managed, false); }

Tensor Tensor::from_dlpack(DLManagedTensorVersioned* managed) {
    if (managed->version.major != 1) {
        throw ValueError("dlpack: expected version 1.x, got " +
                         std::to_string(managed->version.major) + "." +
                         std::to_string(managed->version.minor));
    }
    return import(managed, (managed->flags & kDlpackReadOnly) != 0);
}

DLManagedTensor* Tensor::to_dlpack() const { return make_export<DLManagedTensor>(*this); }

DLManagedTensorVersioned* Tensor::to_dlpack_versioned() const {
    auto* managed = make_export<DLManagedTensorVersioned>(*this);
    managed->version = {1, 0};
    managed->flags = read_only() ? kDlpackReadOnly : 0;
    return managed;
}

}  // namespace tensorhash
