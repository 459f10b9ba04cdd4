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
#include "string_objects.hpp"
#include "table_in.hpp"
#include "table_methods.hpp"
#include "tensorhash/error.hpp"

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
              std::string& room) const override {
        auto const width = static_cast<std::size_t>(rows_.shape()[1]);
        auto const* const data = static_cast<char const*>(rows_.data()) + begin * width;
        for (std::size_t i = 0; i < count; ++i) {
            std::string_view const row(data + i * width, width);
            strings[i] = row.substr(0, row.find_last_not_of('\0') + 1);
            if ((begin + i) * width + strings[i].size() < kBefore) [[unlikely]]
                strings[i] = append_preceded(strings[i], room);
        }
    }
    bool is_preceded() const noexcept override { return true; }

private:
    Tensor rows_;
};

/// NumPy's U: rows of code points of one width, padded with zeros. Read as UTF-8.
class FixedText final : public StringSource {
public:
    /// `rows` is uint32 [N, width].
    FixedText(Tensor const& rows, std::string const& argument)
        : rows_(rows.contiguous()), argument_(&argument) {}
    std::size_t rows() const noexcept override {
        return static_cast<std::size_t>(rows_.shape()[0]);
    }
    void read(std::size_t begin, std::size_t count, std::string_view* strings,
              std::string& room) const override {
        auto const width = static_cast<std::size_t>(rows_.shape()[1]);
        auto const* codes = static_cast<std::uint32_t const*>(rows_.data()) + begin * width;
        room.reserve(kBefore + count * width * 4);
        room.resize(kBefore);
        for (std::size_t i = 0; i < count; ++i, codes += width) {
            std::size_t size = width;
            while (size > 0 && codes[size - 1] == 0) --size;
            std::size_t const start = room.size();
            for (std::size_t at = 0; at < size; ++at) {
                if (!is_character(codes[at])) refuse(begin + i);
                append_utf8(room, codes[at]);
            }
            strings[i] = {room.data() + start, room.size() - start};
        }
    }
    bool is_preceded() const noexcept override { return true; }

private:
    static bool is_character(std::uint32_t code) noexcept {
        return code < 0xd800 || (code >= 0xe000 && code < 0x110000);
    }
    [[noreturn]] void refuse(std::size_t row) const {
        throw ValueError(*argument_ + ": row " + std::to_string(row) +
                         " is no valid text: it has a lone surrogate");
    }

    Tensor rows_;
    std::string const* argument_;
};

/// Calls work(source), without the GIL unless the strings are objects. Work that throws has changed
/// nothing.
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
        FixedText const rows(to_tensor(strings, argument.c_str()), argument);
        return without_gil([&] { return work(rows); });
    }
    ObjectArray const objects(strings, argument.c_str());
    try {
        return work(ObjectsInPlace(objects));
    } catch (UnusualObject const&) {
        Objects const rows(objects, argument.c_str());
        return without_gil([&] { return work(rows); });
    }
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

/// str or bytes objects, one per string. `numbers` are the strings' own, for the message.
nb::typed<nb::list, nb::object> to_list(StringRows const& rows, Tensor const& numbers,
                                        bool as_bytes) {
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
            throw ValueError("numbers: string " + std::to_string(numbers.as<std::int64_t>()[i]) +
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
                Tensor const rows = to_tensor(numbers, "numbers").contiguous();
                return to_list(without_gil([&] { return self.decode(rows); }), rows, as_bytes);
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
