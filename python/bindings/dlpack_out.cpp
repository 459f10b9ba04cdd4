// Exports tensors as DLPack capsules. An importer renames the capsule; the destructor of a capsule
// that was not renamed frees the memory.
#include "dlpack_out.hpp"

#include <memory>
#include <optional>
#include <string>
#include <thread>

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

nb::object legacy_capsule(Tensor const& tensor) {
    return make_capsule(tensor.to_dlpack(), "dltensor", release_legacy);
}

/// The stream on which a consumer will read, or nothing if it does not want us to wait.
std::optional<Stream> consumer_stream(nb::object const& stream, Device device) {
    std::int64_t const number = stream.is_none() ? 1 : nb::cast<std::int64_t>(nb::int_(stream));
    if (number == -1) return std::nullopt;
    if (number < 1) {
        std::string const text =
            "stream: expected None, -1 (do not wait), 1 (legacy default), 2 "
            "(default of the thread) or the handle of a stream, got " +
            std::to_string(number);
        throw nb::buffer_error(text.c_str());
    }
    return Stream{device, static_cast<std::uintptr_t>(number)};
}

bool names_cpu(nb::object const& dl_device) {
    return nb::cast<int>(nb::int_(dl_device[0])) == kDLCPU;
}

bool names(Device device, nb::object const& dl_device) {
    return nb::cast<int>(nb::int_(dl_device[0])) == static_cast<int>(device.type) &&
           nb::cast<int>(nb::int_(dl_device[1])) == device.id;
}

/// The same memory. After its last user, it is freed only when the work that `consumer` has by then
/// is done. If another thread drops it, the legacy stream stands for this thread's default stream.
Tensor until_read(Tensor const& tensor, Stream consumer) {
    auto const release = [consumer, thread = std::this_thread::get_id()](Tensor* held) {
        bool const is_foreign =
            consumer.handle == kPerThreadStream && thread != std::this_thread::get_id();
        try {
            held->read_by(is_foreign ? Stream{consumer.device, kLegacyStream} : consumer);
        } catch (std::exception const&) {  // NOLINT(bugprone-empty-catch)
            // The device failed, or belongs to the parent of a forked child: nothing is freed.
        }
        delete held;
    };
    std::shared_ptr<Tensor> const owner(new Tensor(tensor), release);
    return Tensor::borrow_strided(owner->data(), tensor.shape(), tensor.byte_strides(),
                                  tensor.dtype(), tensor.read_only(), owner, tensor.device());
}

/// Makes the consumer's stream wait for the tensor; the memory waits for the consumer.
Tensor shared_with(Tensor const& tensor, Stream consumer) {
    without_gil([&] { tensor.wait_on(consumer); });
    return until_read(tensor, consumer);
}

/// The tensor to export: a copy if the consumer wants one, or wants it on the CPU.
Tensor to_share(Tensor const& tensor, nb::object const& dl_device, nb::object const& copy) {
    bool const copied = !copy.is_none() && nb::cast<bool>(copy);
    if (dl_device.is_none() || names(tensor.device(), dl_device) ||
        (tensor.device().is_cpu() && names_cpu(dl_device))) {
        return copied ? without_gil([&] { return tensor.clone(); }) : tensor;
    }
    if (!names_cpu(dl_device)) {
        std::string const text =
            "dl_device: expected the CPU, (1, 0), or the device of the array, " +
            to_string(tensor.device());
        throw nb::buffer_error(text.c_str());
    }
    if (!copy.is_none() && !copied) {
        throw nb::buffer_error("copy: expected None or True, because the array is not on the CPU");
    }
    return without_gil([&] { return tensor.to(Device{}); });
}

bool wants_versioned(nb::object const& max_version) {
    return !max_version.is_none() && nb::cast<int>(max_version[0]) >= 1;
}

}  // namespace

nb::object bare_capsule(Tensor const& tensor) {
    if (tensor.device().is_cpu()) return legacy_capsule(tensor);
    return legacy_capsule(shared_with(tensor, {tensor.device(), kLegacyStream}));
}

nb::object standard_dlpack(Tensor const& tensor, nb::object stream, nb::object max_version,
                           nb::object dl_device, nb::object copy) {
    if (tensor.device().is_cpu() && !stream.is_none()) {
        throw nb::buffer_error("stream: expected None for memory on the CPU");
    }
    Tensor shared = to_share(tensor, dl_device, copy);
    if (!shared.device().is_cpu()) {
        std::optional<Stream> const consumer = consumer_stream(stream, shared.device());
        if (consumer) shared = shared_with(shared, *consumer);
    }
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
