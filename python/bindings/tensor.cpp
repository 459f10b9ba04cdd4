// Binds Tensor, which carries results to Python: through NumPy's C interface, the buffer protocol
// or DLPack.
#include "tensorhash/tensor.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <optional>
#include <string>
#include <utility>

#include "array_in.hpp"
#include "bindings.hpp"
#include "dlpack_out.hpp"
#include "numpy_arrays.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::bindings {
namespace {

static_assert(sizeof(Py_ssize_t) == sizeof(std::int64_t),
              "shapes are passed to Python without conversion");

// NumPy's int64 is C's `long` if that has 64 bits; its `long long` is a different dtype.
constexpr bool kLongIsInt64 = sizeof(long) == sizeof(std::int64_t);

// The struct module has no letter for bfloat16: export uint16, and let the Python side rename it.
char const* struct_letter(Dtype dtype) {
    switch (dtype) {
        case Dtype::Bool:
            return "?";
        case Dtype::Int8:
            return "b";
        case Dtype::Int16:
            return "h";
        case Dtype::Int32:
            return "i";
        case Dtype::Int64:
            return kLongIsInt64 ? "l" : "q";
        case Dtype::UInt16:
        case Dtype::BFloat16:
            return "H";
        case Dtype::UInt32:
            return "I";
        case Dtype::UInt64:
            return kLongIsInt64 ? "L" : "Q";
        case Dtype::Float16:
            return "e";
        case Dtype::Float32:
            return "f";
        case Dtype::Float64:
            return "d";
        case Dtype::UInt8:
        case Dtype::Undefined:
            break;
    }
    return "B";
}

char* any_address() {
    static char address = 0;
    return &address;
}

int refuse(Py_buffer* view, char const* why) {
    view->obj = nullptr;
    PyErr_SetString(PyExc_BufferError, why);
    return -1;
}

// The view points at the tensor's shape and strides, which never change during its lifetime.
int get_buffer(PyObject* self, Py_buffer* view, int flags) {
    Tensor& tensor = *nb::inst_ptr<Tensor>(nb::handle(self));
    if (!tensor.device().is_cpu()) {
        return refuse(view, "this array is not on the CPU; copy it with .cpu()");
    }
    if ((flags & PyBUF_WRITABLE) == PyBUF_WRITABLE && tensor.read_only()) {
        return refuse(view, "this array is read-only");
    }
    bool const wants_strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES;
    if (!wants_strides && !tensor.is_contiguous()) {
        return refuse(view, "this array is not contiguous");
    }
    // Consumers read a null address as "not allocated", which an empty array is not.
    view->buf = tensor.data() != nullptr ? tensor.data() : any_address();
    view->obj = Py_NewRef(self);
    view->len = static_cast<Py_ssize_t>(tensor.bytes());
    view->itemsize = static_cast<Py_ssize_t>(byte_size(tensor.dtype()));
    view->readonly = tensor.read_only() ? 1 : 0;
    view->ndim = tensor.rank();
    bool const wants_format = (flags & PyBUF_FORMAT) == PyBUF_FORMAT;
    view->format = wants_format ? const_cast<char*>(struct_letter(tensor.dtype())) : nullptr;
    bool const wants_shape = (flags & PyBUF_ND) == PyBUF_ND;
    auto* shape = const_cast<std::int64_t*>(tensor.shape().data());
    auto* strides = const_cast<std::int64_t*>(tensor.byte_strides().data());
    view->shape = wants_shape ? reinterpret_cast<Py_ssize_t*>(shape) : nullptr;
    view->strides = wants_strides ? reinterpret_cast<Py_ssize_t*>(strides) : nullptr;
    view->suboffsets = nullptr;
    view->internal = nullptr;
    return 0;
}

PyType_Slot const kBufferSlots[] = {
    {Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
    {0, nullptr},
};

nb::typed<nb::tuple, int, nb::ellipsis> shape_tuple(Tensor const& tensor) {
    nb::list shape;
    for (std::int64_t extent : tensor.shape()) shape.append(extent);
    return nb::tuple(shape);
}

Tensor wrap(nb::handle array, std::string const& argument,
            std::optional<std::string> const& dtype) {
    if (!dtype) return to_tensor(array, argument.c_str());
    return to_tensor_as(array, argument.c_str(), dtype_from_name(*dtype));
}

/// The tensor on the CPU: the same object if it is there already.
nb::object on_cpu(nb::handle_t<Tensor> object) {
    Tensor const& tensor = *nb::inst_ptr<Tensor>(object);
    if (tensor.device().is_cpu()) return nb::borrow(object);
    return nb::cast(without_gil([&] { return tensor.to(Device{}); }));
}

nb::object refuse_array(Tensor const& self, nb::object const&, nb::object const&) {
    throw DeviceError("array: NumPy needs memory of the CPU, got memory of \"" +
                      to_string(self.device()) + "\"; copy it with .cpu()");
}

}  // namespace

void bind_tensor(nb::module_& m) {
    load_numpy();
    nb::class_<Tensor>(m, "Tensor", nb::type_slots(kBufferSlots),
                       "An array of the core. Shares its memory by the buffer protocol and DLPack.")
        .def_static("wrap", &wrap, nb::arg("array").none(), nb::arg("argument") = "array",
                    nb::arg("dtype") = nb::none(),
                    "A tensor over a Python array. `dtype` reinterprets elements of equal width.")
        .def_static(
            "from_dlpack",
            [](nb::handle source, std::string const& argument,
               std::optional<std::uintptr_t> stream) {
                return tensor_from_dlpack(source, argument.c_str(), stream);
            },
            nb::arg("source").none(), nb::arg("argument") = "source",
            nb::arg("stream") = nb::none(),
            "A tensor over an array's memory. `stream` is the owner's, on which it frees memory.")
        .def_prop_ro("shape", &shape_tuple)
        .def_prop_ro("dtype", [](Tensor const& self) { return std::string(name(self.dtype())); })
        .def_prop_ro("read_only", &Tensor::read_only)
        .def("to_dlpack", &bare_capsule)
        .def("__dlpack__", &standard_dlpack, nb::kw_only(), nb::arg("stream") = nb::none(),
             nb::arg("max_version") = nb::none(), nb::arg("dl_device") = nb::none(),
             nb::arg("copy") = nb::none())
        .def("__dlpack_device__",
             [](Tensor const& self) {
                 return std::pair(static_cast<int>(self.device().type), self.device().id);
             })
        .def_prop_ro("device", [](Tensor const& self) { return to_string(self.device()); })
        .def(
            "to",
            [](Tensor const& self, std::string const& device) {
                return without_gil([&] { return self.to(Device::parse(device)); });
            },
            nb::arg("device"), "The tensor on a device; itself if it is there already.")
        .def("cpu", &on_cpu, nb::sig("def cpu(self) -> Tensor"))
        .def("__array__", &refuse_array, nb::arg("dtype") = nb::none(),
             nb::arg("copy") = nb::none(),
             "Raises: NumPy calls this only for memory that is not on the CPU.");
    m.def(
        "to_numpy", [](nb::handle_t<Tensor> tensor) { return numpy_from_tensor(tensor); },
        nb::arg("tensor"), "A NumPy array over the tensor, or None if np.asarray must make it.");
}

}  // namespace tensorhash::bindings
