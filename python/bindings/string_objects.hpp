// str and bytes objects as a source of strings.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

#include "array_in.hpp"
#include "bindings.hpp"
#include "tensorhash/error.hpp"
#include "tensorhash/step/platform.hpp"
#include "tensorhash/strings.hpp"
#include "tensorhash/tensor.hpp"

namespace tensorhash::bindings {

inline void append_utf8(std::string& out, std::uint32_t code) {
    auto const put = [&](std::uint32_t byte) { out.push_back(static_cast<char>(byte)); };
    if (code < 0x80) {
        put(code);
    } else if (code < 0x800) {
        put(0xc0 | code >> 6);
        put(0x80 | (code & 0x3f));
    } else if (code < 0x10000) {
        put(0xe0 | code >> 12);
        put(0x80 | (code >> 6 & 0x3f));
        put(0x80 | (code & 0x3f));
    } else {
        put(0xf0 | code >> 18);
        put(0x80 | (code >> 12 & 0x3f));
        put(0x80 | (code >> 6 & 0x3f));
        put(0x80 | (code & 0x3f));
    }
}

/// The objects of a list, a tuple, or a 1-D array of dtype object, read in place.
class ObjectArray {
public:
    ObjectArray(nb::handle array, char const* argument) {
        if (PyList_Check(array.ptr()) || PyTuple_Check(array.ptr())) {
            count_ = static_cast<std::size_t>(PySequence_Fast_GET_SIZE(array.ptr()));
            data_ = reinterpret_cast<char const*>(PySequence_Fast_ITEMS(array.ptr()));
            return;
        }
        if (PyObject_GetBuffer(array.ptr(), &buffer_, PyBUF_FORMAT | PyBUF_STRIDES) != 0) {
            PyErr_Clear();
            fail(array, argument);
        }
        if (buffer_.ndim != 1 || std::string_view(buffer_.format) != "O") {
            PyBuffer_Release(&buffer_);
            fail(array, argument);
        }
        count_ = static_cast<std::size_t>(buffer_.shape[0]);
        step_ = buffer_.strides[0];
        data_ = static_cast<char const*>(buffer_.buf);
    }
    ObjectArray(ObjectArray const&) = delete;
    ObjectArray& operator=(ObjectArray const&) = delete;
    ~ObjectArray() {
        if (buffer_.obj != nullptr) PyBuffer_Release(&buffer_);
    }

    std::size_t size() const noexcept { return count_; }
    /// NumPy stores None as null in a new array.
    PyObject* operator[](std::size_t row) const noexcept {
        PyObject* object;
        std::memcpy(&object, data_ + static_cast<std::ptrdiff_t>(row) * step_, sizeof(PyObject*));
        return object != nullptr ? object : Py_None;
    }

private:
    [[noreturn]] static void fail(nb::handle array, char const* argument) {
        throw TypeError(std::string(argument) + ": expected a list or a 1-D array of objects, " +
                        "got " + class_name(array));
    }

    Py_buffer buffer_{};
    char const* data_ = nullptr;
    std::ptrdiff_t step_ = sizeof(PyObject*);
    std::size_t count_ = 0;
};

/// An object that ObjectsInPlace leaves to Objects, which reads it or says what is wrong.
struct UnusualObject {};

/// str and bytes objects, read in place by all threads. The caller must hold the GIL until the last
/// read, so that no Python code changes the array or ends an object meanwhile. Threads without the
/// GIL only read memory here. Throws UnusualObject for other objects and for lone surrogates.
class ObjectsInPlace final : public StringSource {
public:
    explicit ObjectsInPlace(ObjectArray const& array) : array_(&array) {}
    std::size_t rows() const noexcept override { return array_->size(); }

    void read(std::size_t begin, std::size_t count, std::string_view* strings,
              std::string& room) const override {
        for (std::size_t i = 0; i < count; ++i) step::prefetch((*array_)[begin + i]);
        std::size_t bytes = 0;
        for (std::size_t i = 0; i < count; ++i) bytes += utf8_bound((*array_)[begin + i]);
        room.reserve(kBefore + bytes);
        room.resize(kBefore);
        for (std::size_t i = 0; i < count; ++i) {
            strings[i] = string_of((*array_)[begin + i], room);
            step::prefetch(strings[i].data());
        }
    }
    /// An object has a longer head before its bytes.
    bool is_preceded() const noexcept override { return true; }
    static_assert(sizeof(PyASCIIObject) >= kBefore);
    static_assert(offsetof(PyBytesObject, ob_sval) >= kBefore);

private:
    /// The room that the object needs at most: 0 if its memory holds the bytes as they are.
    static std::size_t utf8_bound(PyObject* object) {
        if (!PyUnicode_Check(object) || PyUnicode_IS_COMPACT_ASCII(object)) return 0;
#if PY_VERSION_HEX < 0x030c0000
        if (!PyUnicode_IS_READY(object)) throw UnusualObject();
#endif
        // A code point of 1, 2 or 4 bytes has at most 2, 3 or 4 bytes in UTF-8.
        std::size_t const most = PyUnicode_KIND(object) == PyUnicode_1BYTE_KIND   ? 2
                                 : PyUnicode_KIND(object) == PyUnicode_2BYTE_KIND ? 3
                                                                                  : 4;
        return most * static_cast<std::size_t>(PyUnicode_GET_LENGTH(object));
    }

    static std::string_view string_of(PyObject* object, std::string& room) {
        if (PyUnicode_Check(object)) {
            if (!PyUnicode_IS_COMPACT_ASCII(object)) return encoded(object, room);
            return {static_cast<char const*>(PyUnicode_DATA(object)),
                    static_cast<std::size_t>(PyUnicode_GET_LENGTH(object))};
        }
        if (!PyBytes_Check(object)) throw UnusualObject();
        return {PyBytes_AS_STRING(object), static_cast<std::size_t>(PyBytes_GET_SIZE(object))};
    }

    static std::string_view encoded(PyObject* object, std::string& room) {
        std::size_t const start = room.size();
        auto const kind = PyUnicode_KIND(object);
        void const* const data = PyUnicode_DATA(object);
        for (Py_ssize_t i = 0; i < PyUnicode_GET_LENGTH(object); ++i) {
            Py_UCS4 const code = PyUnicode_READ(kind, data, i);
            if (code >= 0xd800 && code < 0xe000) throw UnusualObject();
            append_utf8(room, code);
        }
        return {room.data() + start, room.size() - start};
    }

    ObjectArray const* array_;
};

/// References to objects. Made and released with the GIL.
class References {
public:
    explicit References(std::size_t most)
        : memory_(Tensor::empty({static_cast<std::int64_t>(most)}, Dtype::UInt64)),
          objects_(static_cast<PyObject**>(memory_.data())) {}
    References(References const&) = delete;
    References& operator=(References const&) = delete;
    ~References() {
        for (std::size_t i = 0; i < count_; ++i) {
            step::prefetch_for_write(objects_[std::min(i + kAhead, count_ - 1)]);
            Py_DECREF(objects_[i]);
        }
    }
    void add(PyObject* object) {
        Py_INCREF(object);
        objects_[count_++] = object;
    }

    /// Objects lie anywhere in memory, so loops over them prefetch.
    static constexpr std::size_t kAhead = 32;

private:
    Tensor memory_;  // a tensor's memory is reused, and often warm
    PyObject** objects_;
    std::size_t count_ = 0;
};

/// str and bytes objects, read without the GIL. Each row has a reference, so that its bytes stay if
/// the list or array changes meanwhile.
class Objects final : public StringSource {
public:
    Objects(ObjectArray const& array, char const* argument)
        : rows_(array.size()), references_(rows_),
          memory_(Tensor::empty({static_cast<std::int64_t>(rows_ * sizeof(std::string_view))},
                                Dtype::UInt8)),
          strings_(static_cast<std::string_view*>(memory_.data())) {
        for (std::size_t row = 0; row < rows_; ++row) {
            step::prefetch_for_write(array[std::min(row + References::kAhead, rows_ - 1)]);
            strings_[row] = bytes_of(array[row], row, argument);
            references_.add(array[row]);
        }
    }
    std::size_t rows() const noexcept override { return rows_; }
    void read(std::size_t begin, std::size_t count, std::string_view* strings,
              std::string&) const override {
        std::copy_n(strings_ + begin, count, strings);
    }

private:
    static std::string_view bytes_of(PyObject* object, std::size_t row, char const* argument) {
        if (PyUnicode_Check(object)) return utf8_of(object, row, argument);
        if (PyBytes_Check(object)) {
            return {PyBytes_AS_STRING(object), static_cast<std::size_t>(PyBytes_GET_SIZE(object))};
        }
        throw TypeError(std::string(argument) + ": expected str or bytes in every row, got " +
                        class_name(object) + " in row " + std::to_string(row));
    }

    static std::string_view utf8_of(PyObject* object, std::size_t row, char const* argument) {
        if (PyUnicode_IS_COMPACT_ASCII(object)) {
            return {static_cast<char const*>(PyUnicode_DATA(object)),
                    static_cast<std::size_t>(PyUnicode_GET_LENGTH(object))};
        }
        Py_ssize_t size = 0;
        char const* const bytes = PyUnicode_AsUTF8AndSize(object, &size);
        if (bytes == nullptr) {
            PyErr_Clear();
            throw ValueError(std::string(argument) + ": row " + std::to_string(row) +
                             " is no valid text: it has a lone surrogate");
        }
        return {bytes, static_cast<std::size_t>(size)};
    }

    std::size_t rows_;
    References references_;
    Tensor memory_;
    std::string_view* strings_;
};

}  // namespace tensorhash::bindings
