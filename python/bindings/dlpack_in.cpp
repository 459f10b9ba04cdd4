// Python arrays as tensors: DLPack, the way in of torch, JAX and everyone else.
#include <nanobind/stl/string.h>

#include <string>

#include "array_in.hpp"
#include "bindings.hpp"
#include "tensorhash/dlpack.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::bindings {
namespace {

constexpr int cpu_device = 1;
constexpr int pinned_host_device = 3;  // CUDA host memory: the CPU reads it like any other

template <class Managed>
Tensor consume(PyObject* capsule, char const* name, char const* used_name, char const* argument) {
    auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
    if (managed == nullptr) throw nb::python_error();
    try {
        Tensor tensor = Tensor::from_dlpack(managed);
        // Renaming tells the capsule's destructor that the memory has a new owner.
        PyCapsule_SetName(capsule, used_name);
        return tensor;
    } catch (TypeError const& error) {
        throw TypeError(std::string(argument) + ": " + error.what());
    } catch (DeviceError const& error) {
        throw DeviceError(std::string(argument) + ": " + error.what());
    }
}

Tensor from_capsule(nb::handle object, char const* argument) {
    PyObject* capsule = object.ptr();
    if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        return consume<DLManagedTensorVersioned>(capsule, "dltensor_versioned",
                                                 "used_dltensor_versioned", argument);
    }
    if (PyCapsule_IsValid(capsule, "dltensor")) {
        return consume<DLManagedTensor>(capsule, "dltensor", "used_dltensor", argument);
    }
    char const* name = PyCapsule_GetName(capsule);
    if (name == nullptr) PyErr_Clear();
    std::string const found = name != nullptr ? name : "(no name)";
    if (found.starts_with("used_dltensor")) {
        throw ValueError(std::string(argument) +
                         ": this DLPack capsule was consumed already; a capsule serves once");
    }
    throw TypeError(std::string(argument) +
                    ": expected a capsule named \"dltensor\" or \"dltensor_versioned\", got \"" +
                    found + "\"");
}

void require_host_memory(nb::handle object, char const* argument) {
    nb::object method = nb::getattr(object, "__dlpack_device__", nb::none());
    if (method.is_none()) return;
    nb::object device = method();
    int const type = nb::cast<int>(nb::int_(device[0]));
    if (type == cpu_device || type == pinned_host_device) return;
    nb::object described = nb::getattr(object, "device", device);
    std::string const text = nb::cast<std::string>(nb::str(described));
    throw DeviceError(std::string(argument) + ": expected an array on the CPU, got one on " + text +
                      "; copy it to the CPU first");
}

nb::object export_capsule(nb::handle object, char const* argument) {
    nb::object method = nb::getattr(object, "__dlpack__", nb::none());
    if (method.is_none()) {
        throw TypeError(std::string(argument) +
                        ": expected a DLPack capsule or an object with __dlpack__, got " +
                        class_name(object));
    }
    try {
        try {
            return method(nb::arg("max_version") = nb::make_tuple(1, 0));
        } catch (nb::python_error& error) {
            // Producers from before DLPack 1.0 do not know the keyword.
            if (!error.matches(PyExc_TypeError)) throw;
        }
        return method();
    } catch (nb::python_error& error) {
        if (!error.matches(PyExc_Exception)) throw;  // Ctrl-C is not the owner's refusal
        std::string const why = nb::cast<std::string>(nb::str(error.value()));
        nb::raise_from(error, PyExc_ValueError, "%s: its owner refused to share the memory: %s",
                       argument, why.c_str());
    }
}

}  // namespace

Tensor tensor_from_dlpack(nb::handle object, char const* argument) {
    if (PyCapsule_CheckExact(object.ptr())) return from_capsule(object, argument);
    require_host_memory(object, argument);
    nb::object capsule = export_capsule(object, argument);
    if (!PyCapsule_CheckExact(capsule.ptr())) {
        throw TypeError(std::string(argument) + ": its __dlpack__() did not return a capsule");
    }
    return from_capsule(capsule, argument);
}

}  // namespace tensorhash::bindings
