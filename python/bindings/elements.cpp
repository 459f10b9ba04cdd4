// Binds the functions of elements.hpp, and views, for the Tensors of tensorhash.core on a device.
#include "tensorhash/elements.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <string>

#include "bindings.hpp"

namespace tensorhash::bindings {
namespace {

void bind_views(nb::module_& m) {
    m.def(
        "view",
        [](Tensor const& tensor, Shape const& shape, Shape const& byte_strides,
           std::int64_t byte_offset) { return tensor.view(shape, byte_strides, byte_offset); },
        nb::arg("tensor"), nb::arg("shape"), nb::arg("byte_strides"), nb::arg("byte_offset"),
        "A view of elements of the tensor.");
    m.def(
        "clone", [](Tensor const& tensor) { return without_gil([&] { return tensor.clone(); }); },
        nb::arg("tensor"), "A contiguous copy.");
    m.def(
        "reshape", [](Tensor const& tensor, Shape const& shape) { return tensor.reshape(shape); },
        nb::arg("tensor"), nb::arg("shape"), "The same memory with another shape.");
    m.def(
        "is_contiguous", [](Tensor const& tensor) { return tensor.is_contiguous(); },
        nb::arg("tensor"));
    m.def(
        "byte_strides", [](Tensor const& tensor) { return tensor.byte_strides(); },
        nb::arg("tensor"));
    m.def(
        "address",
        [](Tensor const& tensor) { return reinterpret_cast<std::uintptr_t>(tensor.data()); },
        nb::arg("tensor"), "Where the first element is, on the tensor's device.");
}

void bind_writes(nb::module_& m) {
    m.def(
        "put_rows",
        [](Tensor& array, Tensor const& indices, Tensor const& values) {
            without_gil([&] { put_rows(array, indices, values); });
        },
        nb::arg("array"), nb::arg("indices"), nb::arg("values"),
        "Writes rows by number; the last one of equal numbers wins.");
    m.def(
        "assign",
        [](Tensor& array, Tensor const& values) { without_gil([&] { assign(array, values); }); },
        nb::arg("array"), nb::arg("values"), "Copies all elements to an array or a view.");
}

}  // namespace

void bind_elements(nb::module_& m) {
    m.def(
        "cast",
        [](Tensor const& tensor, std::string const& dtype) {
            return without_gil([&] { return cast(tensor, dtype_from_name(dtype)); });
        },
        nb::arg("tensor"), nb::arg("dtype"), "A contiguous copy in another dtype.");
    m.def(
        "true_positions",
        [](Tensor const& mask) { return without_gil([&] { return true_positions(mask); }); },
        nb::arg("mask"), "The positions of the true elements of a bool array with one axis.");
    m.def(
        "take_rows",
        [](Tensor const& array, Tensor const& indices) {
            return without_gil([&] { return take_rows(array, indices); });
        },
        nb::arg("array"), nb::arg("indices"), "The rows of an array by number.");
    bind_writes(m);
    bind_views(m);
}

}  // namespace tensorhash::bindings
