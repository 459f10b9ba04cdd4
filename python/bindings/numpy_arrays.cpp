// Uses a few entries of NumPy's C interface without its headers. Their positions, and the first
// fields of an array, are the same in NumPy 1 and 2, so one build works with both.
#include "numpy_arrays.hpp"

#include <memory>
#include <utility>

#include "bindings.hpp"

namespace tensorhash::bindings {
namespace {

struct ArrayFields {
    PyObject_HEAD char* data;
    int rank;
    Py_ssize_t* shape;
    Py_ssize_t* strides;
    PyObject* base;
    PyObject* descr;
    int flags;
};

struct DescrFields {
    PyObject_HEAD PyObject* type;
    char kind;
    char letter;
    char byte_order;
    char more;
    int number;
};

constexpr int kAligned = 0x0100;
constexpr int kWriteable = 0x0400;

struct Interface {
    PyTypeObject* array_type;
    PyObject* (*descr_from_type)(int number);
    PyObject* (*new_from_descr)(PyTypeObject* type, PyObject* descr, int rank,
                                Py_ssize_t const* shape, Py_ssize_t const* strides, void* data,
                                int flags, PyObject* like);
    int (*set_base_object)(PyObject* array, PyObject* base);
};

// Set once, at import.
std::optional<Interface> numpy;

// NumPy numbers its dtypes by C type. `long` has 64 bits on every platform that we support.
static_assert(sizeof(long) == 8 && sizeof(long long) == 8 && sizeof(int) == 4);

Dtype dtype_of_number(int number) {
    constexpr Dtype kDtypes[] = {Dtype::Bool,   Dtype::Int8,  Dtype::UInt8,  Dtype::Int16,
                                 Dtype::UInt16, Dtype::Int32, Dtype::UInt32, Dtype::Int64,
                                 Dtype::UInt64, Dtype::Int64, Dtype::UInt64, Dtype::Float32,
                                 Dtype::Float64};
    constexpr int kHalf = 23;
    if (number == kHalf) return Dtype::Float16;
    return number >= 0 && number < 13 ? kDtypes[number] : Dtype::Undefined;
}

int number_of_dtype(Dtype dtype) {
    for (int number = 0; number <= 23; ++number) {
        if (dtype_of_number(number) == dtype) return number;
    }
    return -1;
}

// Keeps an array alive. The last copy of a tensor may be destroyed on any thread, so the destructor
// takes the GIL.
struct HeldObject {
    PyObject* object;

    explicit HeldObject(PyObject* held) noexcept : object(Py_NewRef(held)) {}
    HeldObject(HeldObject const&) = delete;
    HeldObject& operator=(HeldObject const&) = delete;
    ~HeldObject() {
        if (!nb::is_alive()) return;
        nb::gil_scoped_acquire held;
        Py_DECREF(object);
    }
};

nb::object interface_capsule() {
    for (char const* const home :
         {"numpy._core._multiarray_umath", "numpy.core._multiarray_umath"}) {
        nb::object const module = nb::steal(PyImport_ImportModule(home));
        if (module.is_valid() && nb::hasattr(module, "_ARRAY_API")) {
            return module.attr("_ARRAY_API");
        }
        PyErr_Clear();
    }
    return {};
}

}  // namespace

void load_numpy() {
    nb::object const capsule = interface_capsule();
    if (!capsule.is_valid() || PyCapsule_CheckExact(capsule.ptr()) == 0) return;
    auto* const table = static_cast<void**>(PyCapsule_GetPointer(capsule.ptr(), nullptr));
    if (table == nullptr) {
        PyErr_Clear();
        return;
    }
    unsigned const version = reinterpret_cast<unsigned (*)()>(table[0])();
    if (version >> 24 != 1 && version >> 24 != 2) return;
    numpy = Interface{
        reinterpret_cast<PyTypeObject*>(table[2]),
        reinterpret_cast<decltype(Interface::descr_from_type)>(table[45]),
        reinterpret_cast<decltype(Interface::new_from_descr)>(table[94]),
        reinterpret_cast<decltype(Interface::set_base_object)>(table[282]),
    };
}

std::optional<Tensor> tensor_from_numpy(nb::handle object) {
    if (!numpy || Py_TYPE(object.ptr()) != numpy->array_type) return std::nullopt;
    auto const& array = *reinterpret_cast<ArrayFields const*>(object.ptr());
    auto const& descr = *reinterpret_cast<DescrFields const*>(array.descr);
    bool const is_native = descr.byte_order == '=' || descr.byte_order == '|';
    Dtype const dtype = dtype_of_number(descr.number);
    if (!is_native || dtype == Dtype::Undefined || (array.flags & kAligned) == 0) {
        return std::nullopt;
    }
    return Tensor::borrow_strided(array.data, Shape(array.shape, array.shape + array.rank),
                                  Shape(array.strides, array.strides + array.rank), dtype,
                                  (array.flags & kWriteable) == 0,
                                  std::make_shared<HeldObject>(object.ptr()));
}

nb::object numpy_from_tensor(nb::handle object) {
    Tensor& tensor = *nb::inst_ptr<Tensor>(object);
    int const number = number_of_dtype(tensor.dtype());
    // For a null pointer NumPy would allocate memory. The buffer protocol exports empty arrays too,
    // and refuses memory that is not on the CPU.
    if (!numpy || number < 0 || tensor.data() == nullptr || !tensor.device().is_cpu()) {
        return nb::none();
    }
    nb::object array = nb::steal(
        numpy->new_from_descr(numpy->array_type, numpy->descr_from_type(number), tensor.rank(),
                              reinterpret_cast<Py_ssize_t const*>(tensor.shape().data()),
                              reinterpret_cast<Py_ssize_t const*>(tensor.byte_strides().data()),
                              tensor.data(), tensor.read_only() ? 0 : kWriteable, nullptr));
    // set_base_object steals the reference, even if it fails.
    if (!array.is_valid() || numpy->set_base_object(array.ptr(), Py_NewRef(object.ptr())) != 0) {
        nb::raise_python_error();
    }
    return array;
}

}  // namespace tensorhash::bindings
