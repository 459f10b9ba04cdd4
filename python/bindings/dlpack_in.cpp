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

// An element of a sequence if it is an integer that fits, or nullopt.
std::optional<long> integer_at(nb::handle sequence, Py_ssize_t at) {
    nb::object const item = nb::steal(PySequence_GetItem(sequence.ptr(), at));
    if (!item.is_valid() || PyIndex_Check(item.ptr()) == 0) {
        PyErr_Clear();
        return std::nullopt;
    }
    nb::object const number = nb::steal(PyNumber_Index(item.ptr()));
    int overflow = 0;
    long const value = number.is_valid() ? PyLong_AsLongAndOverflow(number.ptr(), &overflow) : -1;
    if (PyErr_Occurred() != nullptr || overflow != 0) {
        PyErr_Clear();
        return std::nullopt;
    }
    return value;
}

struct DeviceNumbers {
    long type;
    long id;
};

// The numbers of a (type, id) pair of integers; nullopt if `device` is no such pair.
std::optional<DeviceNumbers> device_numbers(nb::handle device) {
    if (PySequence_Check(device.ptr()) == 0 || PySequence_Size(device.ptr()) != 2) {
        PyErr_Clear();
        return std::nullopt;
    }
    std::optional<long> const type = integer_at(device, 0);
    std::optional<long> const id = integer_at(device, 1);
    if (!type || !id) return std::nullopt;
    return DeviceNumbers{*type, *id};
}

// The device of the numbers if tensors can be there; page-locked memory of CUDA is the CPU's.
std::optional<Device> usable_device(DeviceNumbers numbers) {
    if (numbers.type == kDLCPU || numbers.type == kDLCUDAHost) return Device{};
    if (numbers.type != kDLCUDA && numbers.type != kDLExtDev) return std::nullopt;
    auto const type = static_cast<Device::Type>(numbers.type);
    if (numbers.id < 0 || numbers.id >= device_count(type)) return std::nullopt;
    return Device{type, static_cast<int>(numbers.id)};
}

// The device of an array's memory. Raises unless tensors can be there.
Device device_of(nb::handle object, char const* argument) {
    nb::object method = nb::getattr(object, "__dlpack_device__", nb::none());
    if (method.is_none()) return {};
    nb::object device;
    try {
        device = method();
    } catch (nb::python_error& error) {
        refuse_for_owner(error, argument, "name its device");
    }
    std::optional<DeviceNumbers> const numbers = device_numbers(device);
    if (!numbers) {
        throw TypeError(std::string(argument) +
                        ": expected __dlpack_device__() to return two integers, the device type "
                        "and id, got " +
                        nb::cast<std::string>(nb::repr(device)));
    }
    if (std::optional<Device> const known = usable_device(*numbers)) return *known;
    nb::object described = nb::getattr(object, "device", device);
    std::string const text = nb::cast<std::string>(nb::str(described));
    throw DeviceError(std::string(argument) + ": expected an array on the CPU, got one on " + text +
                      "; copy it to the CPU first");
}

// The stream that an owner of device memory gets. torch and others refuse the default stream of the
// thread. So they make the legacy stream wait, and our work waits for that one.
Stream stream_for_owner(Device device) {
    Stream const stream = current_stream(device);
    return stream.handle == kPerThreadStream ? Stream{device, kLegacyStream} : stream;
}

// Calls __dlpack__. An owner of device memory makes `stream` wait for the array.
nb::object export_capsule(nb::handle object, Stream stream, char const* argument) {
    nb::object method = nb::getattr(object, "__dlpack__", nb::none());
    if (method.is_none()) {
        throw TypeError(std::string(argument) +
                        ": expected a DLPack capsule or an object with __dlpack__, got " +
                        class_name(object));
    }
    nb::dict wishes;
    if (!stream.device.is_cpu()) wishes["stream"] = nb::int_(stream.handle);
    wishes["max_version"] = nb::make_tuple(1, 0);
    try {
        try {
            return method(**wishes);
        } catch (nb::python_error& error) {
            // Producers older than DLPack 1.0 do not accept max_version.
            if (!error.matches(PyExc_TypeError)) throw;
        }
        nb::del(wishes["max_version"]);
        return method(**wishes);
    } catch (nb::python_error& error) {
        refuse_for_owner(error, argument, "share the memory");
    }
}

}  // namespace

Tensor tensor_from_dlpack(nb::handle object, char const* argument,
                          std::optional<std::uintptr_t> owners_stream) {
    if (PyCapsule_CheckExact(object.ptr())) {
        Tensor tensor = from_capsule(object, argument);
        // Its producer did not know our stream, so its work is on the legacy default stream.
        tensor.written_by({tensor.device(), kLegacyStream});
        return tensor;
    }
    Device const device = device_of(object, argument);
    Stream const stream = owners_stream ? Stream{device, *owners_stream} : stream_for_owner(device);
    nb::object capsule = export_capsule(object, stream, argument);
    if (!PyCapsule_CheckExact(capsule.ptr())) {
        throw TypeError(std::string(argument) + ": its __dlpack__() did not return a capsule");
    }
    Tensor tensor = from_capsule(capsule, argument);
    tensor.written_by({tensor.device(), stream.handle});
    return tensor;
}

}  // namespace tensorhash::bindings
