// Converts Python arrays to tensors. Plain NumPy arrays go through NumPy's C interface, others
// through the buffer protocol or DLPack.
#include "array_in.hpp"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "bindings.hpp"
#include "numpy_arrays.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::bindings {
namespace {

// Keeps the exporter's memory alive. The last copy of a tensor may be destroyed on any thread, so
// the destructor takes the GIL.
struct HeldBuffer {
    Py_buffer view{};

    HeldBuffer() = default;
    HeldBuffer(HeldBuffer const&) = delete;
    HeldBuffer& operator=(HeldBuffer const&) = delete;
    ~HeldBuffer() {
        if (view.obj == nullptr || !nb::is_alive()) return;
        nb::gil_scoped_acquire held;
        PyBuffer_Release(&view);
    }
};

// `argument` and `wanted` are for messages. `as` reinterprets elements of the same width.
struct Request {
    char const* argument;
    Dtype wanted = Dtype::Undefined;
    std::optional<Dtype> as = std::nullopt;
};

struct Format {
    Dtype dtype;
    bool swapped;  // the byte order is not the machine's
};

Dtype signed_of(Py_ssize_t bytes) {
    switch (bytes) {
        case 1:
            return Dtype::Int8;
        case 2:
            return Dtype::Int16;
        case 4:
            return Dtype::Int32;
        case 8:
            return Dtype::Int64;
        default:
            return Dtype::Undefined;
    }
}

Dtype unsigned_of(Py_ssize_t bytes) {
    switch (bytes) {
        case 1:
            return Dtype::UInt8;
        case 2:
            return Dtype::UInt16;
        case 4:
            return Dtype::UInt32;
        case 8:
            return Dtype::UInt64;
        default:
            return Dtype::Undefined;
    }
}

Dtype float_of(Py_ssize_t bytes) {
    switch (bytes) {
        case 2:
            return Dtype::Float16;
        case 4:
            return Dtype::Float32;
        case 8:
            return Dtype::Float64;
        default:
            return Dtype::Undefined;
    }
}

// The struct-module letter gives the kind. The width is the exporter's, since 'l' may have 4 or 8
// bytes.
Format parse_format(Py_buffer const& view) {
    std::string_view format = view.format != nullptr ? view.format : "B";
    char const order = format.empty() ? '\0' : format.front();
    constexpr bool kLittle = std::endian::native == std::endian::little;
    bool const swapped = kLittle ? (order == '>' || order == '!') : order == '<';
    if (order != '\0' && std::string_view("@=<>!").find(order) != std::string_view::npos) {
        format.remove_prefix(1);
    }
    if (format.size() != 1) return {Dtype::Undefined, false};

    std::string_view const letter = format;
    Dtype dtype = Dtype::Undefined;
    if (letter == "?") {
        dtype = view.itemsize == 1 ? Dtype::Bool : Dtype::Undefined;
    } else if (std::string_view("bhilqn").find(letter) != std::string_view::npos) {
        dtype = signed_of(view.itemsize);
    } else if (std::string_view("BHILQN").find(letter) != std::string_view::npos) {
        dtype = unsigned_of(view.itemsize);
    } else if (std::string_view("efd").find(letter) != std::string_view::npos) {
        dtype = float_of(view.itemsize);
    }
    return {dtype, swapped && view.itemsize > 1};
}

Tensor with_bytes_swapped(Tensor const& tensor) {
    return without_gil([&] {
        Tensor copy = tensor.clone();
        auto* bytes = static_cast<unsigned char*>(copy.data());
        std::size_t const width = byte_size(copy.dtype());
        std::size_t const total = copy.bytes();
        for (std::size_t at = 0; at < total; at += width)
            std::reverse(bytes + at, bytes + at + width);
        return copy;
    });
}

std::string dtype_text(nb::handle object) {
    nb::object dtype = nb::getattr(object, "dtype", nb::none());
    return dtype.is_none() ? "" : nb::cast<std::string>(nb::str(dtype));
}

// The hint of an error message: how to convert such elements. `got` is NumPy's dtype name. Empty if
// there is no simple way.
std::string way_in(std::string const& argument, std::string_view got) {
    std::string const rows = ".reshape(len(" + argument + "), -1)";
    if (got.starts_with("datetime64") || got.starts_with("timedelta64")) {
        return "; pass " + argument + ".view(\"int64\")";
    }
    if (got == "object") {
        return "; pass " + argument + ".tolist(): each number of a list is checked";
    }
    if (got.starts_with("|S")) {
        return "; tensorhash.factorize and StringIndex number strings; for rows of bytes, pass " +
               argument + ".astype(\"S\").view(\"uint8\")" + rows;
    }
    if (got.starts_with("<U") || got.starts_with(">U") || got.starts_with("StringDType")) {
        return "; tensorhash.factorize and StringIndex number strings; for rows of code points, "
               "pass " +
               argument + ".astype(\"U\").view(\"uint32\")" + rows;
    }
    return "";
}

[[noreturn]] void fail_element_type(nb::handle object, Request const& request,
                                    std::string const& got) {
    std::string const argument = request.argument;
    std::string const wanted = request.wanted == Dtype::Undefined
                                   ? "bool, integers or floats"
                                   : std::string(name(request.wanted));
    throw TypeError(argument + ": expected an array of " + wanted + ", got " + class_name(object) +
                    " of dtype " + got + way_in(argument, got));
}

Tensor from_view(std::shared_ptr<HeldBuffer> held, nb::handle object, Request const& request) {
    Py_buffer const& view = held->view;
    Format format = parse_format(view);
    if (format.dtype == Dtype::Undefined) {
        std::string const got = dtype_text(object);
        fail_element_type(object, request, got.empty() ? view.format : got);
    }
    if (request.as && byte_size(*request.as) == byte_size(format.dtype)) format.dtype = *request.as;
    auto const rank = static_cast<std::size_t>(view.ndim);
    Shape shape(view.shape, view.shape + rank);
    Shape strides(view.strides, view.strides + rank);
    void* const data = view.buf;
    bool const read_only = view.readonly != 0;
    Tensor tensor = Tensor::borrow_strided(data, std::move(shape), std::move(strides), format.dtype,
                                           read_only, std::move(held));
    return format.swapped ? with_bytes_swapped(tensor) : tensor;
}

bool is_bfloat16(nb::handle object) { return dtype_text(object) == "bfloat16"; }

// Returns nullopt if the exporter refuses. Drops its error, since the caller tries other ways.
std::optional<Tensor> try_buffer(nb::handle object, Request const& request) {
    auto held = std::make_shared<HeldBuffer>();
    if (PyObject_GetBuffer(object.ptr(), &held->view, PyBUF_STRIDES | PyBUF_FORMAT) != 0) {
        PyErr_Clear();
        return std::nullopt;
    }
    return from_view(std::move(held), object, request);
}

Tensor convert(nb::handle object, Request const& request) {
    if (!request.as) {
        if (std::optional<Tensor> tensor = tensor_from_numpy(object)) return *std::move(tensor);
    }
    if (nb::isinstance<Tensor>(object)) return nb::cast<Tensor const&>(object);
    bool const has_buffer = PyObject_CheckBuffer(object.ptr()) != 0;
    if (has_buffer) {
        if (std::optional<Tensor> tensor = try_buffer(object, request)) return *std::move(tensor);
        if (is_bfloat16(object)) {
            nb::object words = object.attr("view")("uint16");
            return to_tensor_as(words, request.argument, Dtype::BFloat16);
        }
    }
    bool const is_capsule = PyCapsule_CheckExact(object.ptr()) != 0;
    // A NumPy array that refuses the buffer protocol refuses DLPack too, with a vaguer message.
    bool const is_numpy = has_buffer && nb::hasattr(object, "__array_interface__");
    if (is_capsule || (!is_numpy && nb::hasattr(object, "__dlpack__"))) {
        return tensor_from_dlpack(object, request.argument);
    }
    if (has_buffer) fail_element_type(object, request, dtype_text(object));
    throw TypeError(std::string(request.argument) + ": expected an array, got " +
                    class_name(object));
}

}  // namespace

std::string class_name(nb::handle object) {
    return nb::cast<std::string>(nb::str(nb::getattr(object.type(), "__name__")));
}

Tensor to_tensor(nb::handle object, char const* argument, Dtype wanted) {
    return convert(object, {.argument = argument, .wanted = wanted});
}

Tensor to_tensor_as(nb::handle object, char const* argument, Dtype dtype) {
    return convert(object, {.argument = argument, .as = dtype});
}

}  // namespace tensorhash::bindings
