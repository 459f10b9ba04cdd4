// Binds StringIndex. Strings come from Arrow columns, from NumPy's fixed-width arrays, and from
// Python objects; only the last have an object per row.
#include "tensorhash/strings.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data_arrow.hpp"
#include "table_in.hpp"
#include "table_methods.hpp"
#include "tensorhash/error.hpp"
#include "tensorhash/step/platform.hpp"

namespace tensorhash::bindings {
namespace {

/// NumPy's S: rows of bytes of one width, padded with zeros.
class FixedBytes final : public StringSource {
public:
    /// `rows` is uint8 [N, width].
    explicit FixedBytes(Tensor const& rows) : rows_(rows.contiguous()) {}
    std::size_t rows() const noexcept override {
        return static_cast<std::size_t>(rows_.shape()[0]);
    }
    void read(std::size_t begin, std::size_t count, std::string_view* strings,
              std::string&) const override {
        auto const width = static_cast<std::size_t>(rows_.shape()[1]);
        auto const* const data = static_cast<char const*>(rows_.data()) + begin * width;
        for (std::size_t i = 0; i < count; ++i) {
            std::string_view const row(data + i * width, width);
            strings[i] = row.substr(0, row.find_last_not_of('\0') + 1);
        }
    }
    std::string_view memory(std::size_t, std::size_t) const noexcept override {
        return {static_cast<char const*>(rows_.data()), static_cast<std::size_t>(rows_.size())};
    }

private:
    Tensor rows_;
};

void append_utf8(std::string& out, std::uint32_t code) {
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

/// NumPy's U: rows of code points of one width, padded with zeros. Read as UTF-8.
class FixedText final : public StringSource {
public:
    /// `rows` is uint32 [N, width].
    explicit FixedText(Tensor const& rows) : rows_(rows.contiguous()) {}
    std::size_t rows() const noexcept override {
        return static_cast<std::size_t>(rows_.shape()[0]);
    }
    void read(std::size_t begin, std::size_t count, std::string_view* strings,
              std::string& room) const override {
        auto const width = static_cast<std::size_t>(rows_.shape()[1]);
        auto const* codes = static_cast<std::uint32_t const*>(rows_.data()) + begin * width;
        room.reserve(room.size() + count * width * 4);
        for (std::size_t i = 0; i < count; ++i, codes += width) {
            std::size_t size = width;
            while (size > 0 && codes[size - 1] == 0) --size;
            std::size_t const start = room.size();
            for (std::size_t at = 0; at < size; ++at) append_utf8(room, codes[at]);
            strings[i] = {room.data() + start, room.size() - start};
        }
    }

private:
    Tensor rows_;
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

/// str and bytes objects. Each row has a reference, so that its bytes stay if the list or array
/// changes meanwhile.
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

/// Calls work(source) without the GIL.
template <class Work>
Tensor with_source(nb::handle strings, std::string const& kind, std::string const& argument,
                   Work&& work) {
    if (kind == "arrow") {
        auto const& column = nb::cast<ArrowColumn const&>(strings);
        return without_gil([&] { return work(column); });
    }
    if (kind == "bytes") {
        FixedBytes const rows(to_tensor(strings, argument.c_str()));
        return without_gil([&] { return work(rows); });
    }
    if (kind == "text") {
        FixedText const rows(to_tensor(strings, argument.c_str()));
        return without_gil([&] { return work(rows); });
    }
    Objects const rows(ObjectArray(strings, argument.c_str()), argument.c_str());
    return without_gil([&] { return work(rows); });
}

Tensor insert(StringIndex& self, nb::handle strings, std::string const& kind,
              std::string const& argument) {
    return with_source(strings, kind, argument,
                       [&](StringSource const& rows) { return self.insert(rows); });
}

Tensor find(StringIndex const& self, nb::handle strings, std::string const& kind,
            std::string const& argument) {
    return with_source(strings, kind, argument,
                       [&](StringSource const& rows) { return self.find(rows); });
}

/// str or bytes objects, one per string.
nb::typed<nb::list, nb::object> to_list(StringRows const& rows, bool as_bytes) {
    std::span<std::int64_t const> const offsets = rows.offsets.as<std::int64_t>();
    auto const* const bytes = static_cast<char const*>(rows.bytes.data());
    nb::typed<nb::list, nb::object> out;
    for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
        char const* const at = bytes + offsets[i];
        auto const size = static_cast<Py_ssize_t>(offsets[i + 1] - offsets[i]);
        PyObject* const made = as_bytes ? PyBytes_FromStringAndSize(at, size)
                                        : PyUnicode_DecodeUTF8(at, size, nullptr);
        if (made == nullptr) {
            PyErr_Clear();
            throw ValueError("numbers: string " + std::to_string(i) +
                             " is not UTF-8; pass as_bytes=True");
        }
        out.append(nb::steal(made));
    }
    return out;
}

}  // namespace

void bind_strings(nb::module_& m) {
    nb::class_<StringIndex> index(m, "StringIndex", "Numbers distinct strings.");
    index.def(nb::init<std::optional<std::uint64_t>>(), nb::arg("seed").none())
        .def("insert", &insert, nb::arg("strings"), nb::arg("kind"), nb::arg("argument"))
        .def("find", &find, nb::arg("strings"), nb::arg("kind"), nb::arg("argument"))
        .def(
            "decode",
            [](StringIndex const& self, nb::handle numbers, bool as_bytes) {
                Tensor const rows = to_tensor(numbers, "numbers");
                return to_list(without_gil([&] { return self.decode(rows); }), as_bytes);
            },
            nb::arg("numbers"), nb::arg("as_bytes"))
        .def(
            "strings",
            [](StringIndex const& self) {
                return without_gil([&] {
                    StringRows rows = self.strings();
                    return Pair(std::move(rows.offsets), std::move(rows.bytes));
                });
            },
            "(offsets int64 [N + 1], bytes uint8).")
        .def("size", &StringIndex::size)
        .def("memory", &StringIndex::memory)
        .def("clone",
             [](StringIndex const& self) { return without_gil([&] { return self.clone(); }); });
    bind_files(index);
}

}  // namespace tensorhash::bindings
