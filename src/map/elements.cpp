// Functions of elements.hpp: checks arguments and orders streams; the back end does the work.
#include "tensorhash/elements.hpp"

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>

#include "backend/loader.hpp"
#include "tensor/shapes.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash {
namespace {

using backend::Bytes;

Bytes bytes_of(Tensor const& tensor) { return static_cast<Bytes>(tensor.data()); }
unsigned char* bytes_of(Tensor& tensor) { return static_cast<unsigned char*>(tensor.data()); }

/// Calls work(back end) on the device of `written`, after the work on these arrays.
template <class Work>
void run(Tensor& written, std::initializer_list<Tensor const*> read, Work const& work) {
    Device const device = written.device();
    Stream const stream = current_stream(device);
    written.wait_to_write(stream);
    for (Tensor const* const tensor : read) {
        tensor->wait_on(stream);
    }
    work(backend::backend_for(device, "array"));
    for (Tensor const* const tensor : read) {
        tensor->read_by(stream);
    }
    written.written_by(stream);
}

void require_same_device(Tensor const& array, Tensor const& other, std::string const& argument) {
    if (array.device() != other.device()) {
        throw DeviceError(argument + ": expected memory of \"" + to_string(array.device()) +
                          "\", where the array is, got memory of \"" + to_string(other.device()) +
                          "\"; move it with to()");
    }
}

void require_writable(Tensor const& array) {
    if (array.read_only()) {
        throw ValueError("array: expected one that can be written, got a read-only one");
    }
}

/// Positions have 32 bits.
std::uint64_t checked_rows(Tensor const& array, std::string const& argument) {
    if (array.rank() == 0) {
        throw ValueError(argument + ": expected rows, got a single element");
    }
    std::int64_t const rows = array.shape()[0];
    constexpr std::int64_t kMost = std::numeric_limits<std::uint32_t>::max() - 1;
    if (rows > kMost) {
        throw ValueError(argument + ": expected at most " + std::to_string(kMost) + " rows, got " +
                         std::to_string(rows));
    }
    return static_cast<std::uint64_t>(rows);
}

/// `indices` as contiguous int64.
Tensor checked_indices(Tensor const& array, Tensor const& indices) {
    require_same_device(array, indices, "indices");
    Dtype const dtype = indices.dtype();
    bool const is_integer = Dtype::Int8 <= dtype && dtype <= Dtype::UInt64;
    if (!is_integer) {
        throw TypeError("indices: expected integers, got " + std::string(name(dtype)));
    }
    if (indices.rank() != 1) {
        throw ValueError("indices: expected one axis, got shape " + to_string(indices.shape()));
    }
    checked_rows(indices, "indices");
    return dtype == Dtype::Int64 ? indices.contiguous() : cast(indices, Dtype::Int64);
}

std::uint64_t row_bytes(Tensor const& array) {
    Shape const& shape = array.shape();
    auto const elements = num_elements(Shape(shape.begin() + 1, shape.end()));
    return static_cast<std::uint64_t>(elements) * byte_size(array.dtype());
}

backend::PickedRows picked_rows(Tensor const& array, Tensor const& indices) {
    return {checked_rows(array, "array"), row_bytes(array),
            static_cast<std::int64_t const*>(indices.data()),
            static_cast<std::uint64_t>(indices.shape()[0])};
}

bool may_overlap(Tensor const& a, Tensor const& b) {
    if (a.size() == 0 || b.size() == 0) {
        return false;
    }
    Extent const in_a = extent_of(a.shape(), a.byte_strides(), byte_size(a.dtype()));
    Extent const in_b = extent_of(b.shape(), b.byte_strides(), byte_size(b.dtype()));
    return bytes_of(a) + in_a.low < bytes_of(b) + in_b.high &&
           bytes_of(b) + in_b.low < bytes_of(a) + in_a.high;
}

}  // namespace

Tensor cast(Tensor const& tensor, Dtype dtype) {
    if (byte_size(dtype) == 0) {
        throw TypeError("dtype: expected a dtype of elements, got undefined");
    }
    Tensor const from = tensor.contiguous();
    Tensor out = Tensor::empty(from.shape(), dtype, from.device());
    auto const count = static_cast<std::uint64_t>(from.size());
    if (count != 0) {
        run(out, {&from}, [&](backend::DeviceBackend& on) {
            on.cast({bytes_of(from), from.dtype(), bytes_of(out), dtype, count}, out.device());
        });
    }
    return out;
}

Tensor true_positions(Tensor const& mask) {
    if (mask.dtype() != Dtype::Bool) {
        throw TypeError("mask: expected bool, got " + std::string(name(mask.dtype())));
    }
    if (mask.rank() != 1) {
        throw ValueError("mask: expected one axis, got shape " + to_string(mask.shape()));
    }
    std::uint64_t const rows = checked_rows(mask, "mask");
    if (rows == 0) {
        return Tensor::empty({0}, Dtype::Int64, mask.device());
    }
    Tensor const from = mask.contiguous();
    Stream const stream = current_stream(from.device());
    from.wait_on(stream);
    Tensor out =
        backend::backend_for(from.device(), "mask").true_rows(bytes_of(from), rows, from.device());
    from.read_by(stream);
    out.written_by(stream);
    return out;
}

Tensor take_rows(Tensor const& array, Tensor const& indices) {
    Tensor const numbers = checked_indices(array, indices);
    Tensor const from = array.contiguous();
    backend::PickedRows const picked = picked_rows(from, numbers);
    Shape shape = from.shape();
    shape[0] = numbers.shape()[0];
    Tensor out = Tensor::empty(shape, from.dtype(), from.device());
    if (picked.count != 0) {
        run(out, {&from, &numbers}, [&](backend::DeviceBackend& on) {
            on.take(picked, bytes_of(from), bytes_of(out), out.device());
        });
    }
    return out;
}

void put_rows(Tensor& array, Tensor const& indices, Tensor const& values) {
    require_writable(array);
    require_same_device(array, values, "values");
    Tensor const numbers = checked_indices(array, indices);
    backend::PickedRows const picked = picked_rows(array, numbers);
    if (!array.is_contiguous()) {
        throw ValueError("array: expected contiguous rows to write to, got strides " +
                         to_string(array.byte_strides()) + " in bytes");
    }
    Shape shape = array.shape();
    shape[0] = numbers.shape()[0];
    if (values.dtype() != array.dtype() || values.shape() != shape) {
        throw ValueError("values: expected " + std::string(name(array.dtype())) + " of shape " +
                         to_string(shape) + ", got " + std::string(name(values.dtype())) +
                         " of shape " + to_string(values.shape()));
    }
    Tensor const from = may_overlap(array, values) ? values.clone() : values.contiguous();
    if (picked.count != 0) {
        run(array, {&from, &numbers}, [&](backend::DeviceBackend& on) {
            on.put(picked, bytes_of(from), bytes_of(array), array.device());
        });
    }
}

void assign(Tensor& array, Tensor const& values) {
    require_writable(array);
    require_same_device(array, values, "values");
    if (values.dtype() != array.dtype() || values.shape() != array.shape()) {
        throw ValueError("values: expected " + std::string(name(array.dtype())) + " of shape " +
                         to_string(array.shape()) + ", got " + std::string(name(values.dtype())) +
                         " of shape " + to_string(values.shape()));
    }
    if (array.size() == 0) {
        return;
    }
    Tensor const from = may_overlap(array, values) ? values.clone() : values.contiguous();
    run(array, {&from}, [&](backend::DeviceBackend& on) {
        if (array.is_contiguous()) {
            on.copy(array.data(), from.data(), from.bytes(), array.device());
        } else {
            on.paste({bytes_of(from), bytes_of(array), array.shape(), array.byte_strides(),
                      byte_size(array.dtype())},
                     array.device());
        }
    });
}

}  // namespace tensorhash
