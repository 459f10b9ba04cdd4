// Exports tensors as DLPack capsules. An importer renames the capsule; the destructor of a capsule
// that was not renamed frees the memory.
#include "dlpack_out.hpp"

#include "bindings.hpp"
#include "tensorhash/dlpack.hpp"

namespace tensorhash::bindings {
namespace {

template <class Managed>
void release_if_unused(PyObject* capsule, char const* name) {
    if (!PyCapsule_IsValid(capsule, name)) return;
    auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
    if (managed->deleter != nullptr) managed->deleter(managed);
}

void release_legacy(PyObject* capsule) { release_if_unused<DLManagedTensor>(capsule, "dltensor"); }

void release_versioned(PyObject* capsule) {
    release_if_unused<DLManagedTensorVersioned>(capsule, "dltensor_versioned");
}

template <class Managed>
nb::object make_capsule(Managed* managed, char const* name, PyCapsule_Destructor destructor) {
    PyObject* capsule = PyCapsule_New(managed, name, destructor);
    if (capsule == nullptr) {
        managed->deleter(managed);
        throw nb::python_error();
    }
    return nb::steal(capsule);
}

bool wants_versioned(nb::object const& max_version) {
    return !max_version.is_none() && nb::cast<int>(max_version[0]) >= 1;
}

}  // namespace

nb::object legacy_capsule(Tensor const& tensor) {
    return make_capsule(tensor.to_dlpack(), "dltensor", release_legacy);
}

nb::object standard_dlpack(Tensor const& tensor, nb::object stream, nb::object max_version,
                           nb::object dl_device, nb::object copy) {
    if (!stream.is_none()) throw nb::buffer_error("stream: expected None for memory on the CPU");
    if (!dl_device.is_none() && nb::cast<int>(nb::int_(dl_device[0])) != 1) {
        throw nb::buffer_error(
            "dl_device: expected the CPU, (1, 0): this build exports to no other");
    }
    bool const copied = !copy.is_none() && nb::cast<bool>(copy);
    Tensor const shared = copied ? without_gil([&] { return tensor.clone(); }) : tensor;
    if (wants_versioned(max_version)) {
        return make_capsule(shared.to_dlpack_versioned(), "dltensor_versioned", release_versioned);
    }
    if (shared.read_only()) {
        throw nb::buffer_error(
            "the array is read-only, which DLPack before 1.0 cannot express; "
            "pass max_version=(1, 0) or copy=True");
    }
    return legacy_capsule(shared);
}

}  // namespace tensorhash::bindings
