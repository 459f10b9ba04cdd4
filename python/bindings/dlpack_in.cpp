// Imports arrays of torch, JAX and other libraries through DLPack.
#include <nanobind/stl/string.h>

#include <optional>
#include <string>

#include "array_in.hpp"
#include "bindings.hpp"
#include "tensorhash/dlpack.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::bindings {
namespace {

constexpr long kCpuDevice = 1;
constexpr long kPinnedHostDevice = 3;  // page-locked host memory of CUDA, which the CPU can read

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
    } catch (ValueError const& error) {
        throw ValueError(std::string(argument) + ": " + error.what());
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
                         ": expected an unused DLPack capsule, got one that was already imported");
    }
    throw TypeError(std::string(argument) +
                    ": expected a capsule named \"dltensor\" or \"dltensor_versioned\", got \"" +
                    found + "\"");
}

// Raises the owner's error again, as a ValueError that names `argument`.
[[noreturn]] void refuse_for_owner(nb::python_error& error, char const* argument,
                                   char const* refused_to) {
    if (!error.matches(PyExc_Exception)) throw;  // KeyboardInterrupt and the like
    std::string const why = nb::cast<std::string>(nb::str(error.value()));
    nb::raise_from(error, PyExc_ValueError, "%s: its owner refused to %s: %s", argument, refused_to,
                   why.c_str());
}

// The device type of a (type, id) pair of integers; nullopt if `device` is no such pair.
std::optional<long> device_type(nb::handle device) {
    if (PySequence_Check(device.ptr()) == 0 || PySequence_Size(device.ptr()) != 2) {
        PyErr_Clear();
        return std::nullopt;
    }
    nb::object const first = nb::steal(PySequence_GetItem(device.ptr(), 0));
    if (!first.is_valid() || PyIndex_Check(first.ptr()) == 0) {
        PyErr_Clear();
        return std::nullopt;
    }
    nb::object const number = nb::steal(PyNumber_Index(first.ptr()));
    int overflow = 0;
    long const type = number.is_valid() ? PyLong_AsLongAndOverflow(number.ptr(), &overflow) : -1;
    if (PyErr_Occurred() != nullptr || overflow != 0) {
        PyErr_Clear();
        return std::nullopt;
    }
    return type;
}

void require_host_memory(nb::handle object, char const* argument) {
    nb::object method = nb::getattr(object, "__dlpack_device__", nb::none());
    if (method.is_none()) return;
    nb::object device;
    try {
        device = method();
    } catch (nb::python_error& error) {
        refuse_for_owner(error, argument, "name its device");
    }
    std::optional<long> const type = device_type(device);
    if (!type) {
        throw TypeError(std::string(argument) +
                        ": expected __dlpack_device__() to return two integers, the device type "
                        "and id, got " +
                        nb::cast<std::string>(nb::repr(device)));
    }
    if (*type == kCpuDevice || *type == kPinnedHostDevice) return;
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
            // Producers older than DLPack 1.0 do not accept max_version.
            if (!error.matches(PyExc_TypeError)) throw;
        }
        return method();
    } catch (nb::python_error& error) {
        refuse_for_owner(error, argument, "share the memory");
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
