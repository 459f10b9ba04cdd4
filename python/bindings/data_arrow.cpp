// Imports Arrow data from capsules, and reads numbers and strings of every layout.
#include "data_arrow.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "array_in.hpp"
#include "bindings.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::bindings {
namespace {

/// Owns a struct of the interface: release() is called once.
template <class Struct>
struct Owned : Struct {
    Owned() : Struct{} {}
    Owned(Owned const&) = delete;
    Owned& operator=(Owned const&) = delete;
    ~Owned() {
        if (this->release != nullptr) this->release(this);
    }
    /// Moves from a struct of the producer, as the specification says.
    void take(Struct* from) {
        static_cast<Struct&>(*this) = *from;
        from->release = nullptr;
    }
};

struct Imported {
    Owned<ArrowSchema> schema;
    std::vector<std::unique_ptr<Owned<ArrowArray>>> arrays;
};

template <class Struct>
Struct* in_capsule(nb::handle capsule, char const* name, char const* argument) {
    void* const pointer = PyCapsule_GetPointer(capsule.ptr(), name);
    if (pointer == nullptr) {
        PyErr_Clear();
        throw TypeError(std::string(argument) + ": expected a capsule \"" + name + "\" from its " +
                        "Arrow method, got " + class_name(capsule));
    }
    return static_cast<Struct*>(pointer);
}

void import_stream(nb::handle object, char const* argument, Imported& out) {
    nb::object const capsule = object.attr("__arrow_c_stream__")();
    auto* const stream = in_capsule<ArrowArrayStream>(capsule, "arrow_array_stream", argument);
    auto const require = [&](int code) {
        if (code == 0) return;
        char const* const why = stream->get_last_error(stream);
        throw ValueError(std::string(argument) +
                         ": the stream failed: " + (why != nullptr ? why : "without a reason"));
    };
    require(stream->get_schema(stream, &out.schema));
    for (;;) {
        auto array = std::make_unique<Owned<ArrowArray>>();
        require(stream->get_next(stream, array.get()));
        if (array->release == nullptr) break;
        out.arrays.push_back(std::move(array));
    }
}

void import_array(nb::handle object, char const* argument, Imported& out) {
    nb::object const pair = object.attr("__arrow_c_array__")();
    nb::object const schema = pair[0];
    nb::object const array = pair[1];
    out.schema.take(in_capsule<ArrowSchema>(schema, "arrow_schema", argument));
    out.arrays.push_back(std::make_unique<Owned<ArrowArray>>());
    out.arrays.back()->take(in_capsule<ArrowArray>(array, "arrow_array", argument));
}

/// How numbers of a format are stored. Dates, times and durations are their integers.
std::optional<Dtype> dtype_of_format(std::string_view format) {
    struct Named {
        std::string_view start;
        Dtype dtype;
    };
    static constexpr Named kExact[] = {
        {"b", Dtype::Bool},    {"c", Dtype::Int8},    {"C", Dtype::UInt8},   {"s", Dtype::Int16},
        {"S", Dtype::UInt16},  {"i", Dtype::Int32},   {"I", Dtype::UInt32},  {"l", Dtype::Int64},
        {"L", Dtype::UInt64},  {"e", Dtype::Float16}, {"f", Dtype::Float32}, {"g", Dtype::Float64},
        {"tdD", Dtype::Int32}, {"tdm", Dtype::Int64}, {"tts", Dtype::Int32}, {"ttm", Dtype::Int32},
        {"ttu", Dtype::Int64}, {"ttn", Dtype::Int64}, {"tDs", Dtype::Int64}, {"tDm", Dtype::Int64},
        {"tDu", Dtype::Int64}, {"tDn", Dtype::Int64}};
    for (Named const& one : kExact) {
        if (one.start == format) return one.dtype;
    }
    if (format.starts_with("ts")) return Dtype::Int64;
    return std::nullopt;
}

bool bit_at(void const* bits, std::size_t at) {
    return (static_cast<unsigned char const*>(bits)[at / 8] >> (at % 8) & 1) != 0;
}

bool is_valid(ArrowArray const& array, std::size_t at) {
    return array.null_count == 0 || array.n_buffers == 0 || array.buffers[0] == nullptr ||
           bit_at(array.buffers[0], at);
}

template <class T>
T element(void const* buffer, std::size_t at) {
    T value;
    std::memcpy(&value, static_cast<unsigned char const*>(buffer) + at * sizeof(T), sizeof(T));
    return value;
}

/// The index of a dictionary-encoded row.
std::size_t index_at(std::string_view format, void const* buffer, std::size_t at) {
    switch (format[0]) {
        case 'c':
            return static_cast<std::size_t>(element<std::int8_t>(buffer, at));
        case 'C':
            return element<std::uint8_t>(buffer, at);
        case 's':
            return static_cast<std::size_t>(element<std::int16_t>(buffer, at));
        case 'S':
            return element<std::uint16_t>(buffer, at);
        case 'i':
            return static_cast<std::size_t>(element<std::int32_t>(buffer, at));
        case 'I':
            return element<std::uint32_t>(buffer, at);
        default:
            return static_cast<std::size_t>(element<std::int64_t>(buffer, at));
    }
}

/// A string and how many bytes before its end can be read.
struct Placed {
    std::string_view string;
    std::size_t end;
};

/// A string of the view layout: short ones are inside the view.
Placed view_at(ArrowArray const& array, std::size_t at) {
    auto const* const view = static_cast<char const*>(array.buffers[1]) + at * 16;
    auto const size = static_cast<std::size_t>(element<std::int32_t>(view, 0));
    if (size <= 12) return {{view + 4, size}, at * 16 + 4 + size};
    auto const buffer = static_cast<std::size_t>(element<std::int32_t>(view, 2));
    auto const begin = static_cast<std::size_t>(element<std::int32_t>(view, 3));
    return {{static_cast<char const*>(array.buffers[2 + buffer]) + begin, size}, begin + size};
}

template <class Offset>
Placed offset_string(ArrowArray const& array, std::size_t at) {
    auto const begin = static_cast<std::size_t>(element<Offset>(array.buffers[1], at));
    auto const end = static_cast<std::size_t>(element<Offset>(array.buffers[1], at + 1));
    return {{static_cast<char const*>(array.buffers[2]) + begin, end - begin}, end};
}

/// Calls body(string_at), where string_at(array, row) is a Placed. Asks for the layout once.
template <class Body>
void with_layout(std::string_view format, Body&& body) {
    if (format[0] == 'v') {
        body([](ArrowArray const& array, std::size_t at) { return view_at(array, at); });
    } else if (format == "u" || format == "z") {
        body([](ArrowArray const& array, std::size_t at) {
            return offset_string<std::int32_t>(array, at);
        });
    } else if (format == "U" || format == "Z") {
        body([](ArrowArray const& array, std::size_t at) {
            return offset_string<std::int64_t>(array, at);
        });
    } else {
        auto const width = static_cast<std::size_t>(std::stoll(std::string(format.substr(2))));
        body([width](ArrowArray const& array, std::size_t at) -> Placed {
            return {{static_cast<char const*>(array.buffers[1]) + at * width, width},
                    (at + 1) * width};
        });
    }
}

void copy_numbers(ArrowArray const& array, Dtype dtype, std::size_t first, std::size_t rows,
                  unsigned char* out) {
    if (rows == 0) return;
    if (dtype == Dtype::Bool) {
        for (std::size_t i = 0; i < rows; ++i) out[i] = bit_at(array.buffers[1], first + i) ? 1 : 0;
        return;
    }
    std::size_t const bytes = byte_size(dtype);
    std::memcpy(out, static_cast<unsigned char const*>(array.buffers[1]) + first * bytes,
                rows * bytes);
}

}  // namespace

ArrowColumn::ArrowColumn(std::shared_ptr<void const> owner, ArrowSchema const* schema,
                         std::vector<Piece> pieces)
    : owner_(std::move(owner)), schema_(schema),
      values_(schema->dictionary != nullptr ? schema->dictionary : schema),
      pieces_(std::move(pieces)) {
    for (Piece& piece : pieces_) {
        piece.before = rows_;
        rows_ += piece.rows;
    }
}

bool ArrowColumn::is_text() const noexcept {
    std::string_view const format = values_->format;
    return format == "u" || format == "U" || format == "z" || format == "Z" || format == "vu" ||
           format == "vz" || format.starts_with("w:");
}

bool ArrowColumn::is_null(Piece const& piece, std::size_t row) const {
    std::size_t const at = piece.first + row;
    if (!is_valid(*piece.array, at)) return true;
    if (schema_->dictionary == nullptr) return false;
    ArrowArray const& dictionary = *piece.array->dictionary;
    return !is_valid(dictionary, static_cast<std::size_t>(dictionary.offset) +
                                     index_at(schema_->format, piece.array->buffers[1], at));
}

std::pair<std::size_t, std::size_t> ArrowColumn::nulls() const {
    if (std::string_view(values_->format) == "n") return {rows_, 0};
    std::size_t count = 0;
    std::size_t first = 0;
    for (Piece const& piece : pieces_) {
        bool const has_none =
            (piece.array->null_count == 0 || piece.array->buffers[0] == nullptr) &&
            (piece.array->dictionary == nullptr || piece.array->dictionary->null_count == 0);
        for (std::size_t row = 0; !has_none && row < piece.rows; ++row) {
            if (!is_null(piece, row)) continue;
            first = count == 0 ? piece.before + row : first;
            ++count;
        }
    }
    return {count, first};
}

Tensor ArrowColumn::numbers(std::string const& argument) const {
    std::optional<Dtype> const dtype = dtype_of_format(values_->format);
    if (!dtype) {
        throw TypeError(argument + ": expected bool, integers, floats, dates, times or strings, " +
                        "got Arrow's type \"" + values_->format + "\"");
    }
    Tensor out = Tensor::empty({static_cast<std::int64_t>(rows_)}, *dtype);
    auto* const to = static_cast<unsigned char*>(out.data());
    std::size_t const bytes = byte_size(*dtype);
    for (Piece const& piece : pieces_) {
        if (schema_->dictionary == nullptr) {
            copy_numbers(*piece.array, *dtype, piece.first, piece.rows, to + piece.before * bytes);
            continue;
        }
        ArrowArray const& dictionary = *piece.array->dictionary;
        for (std::size_t row = 0; row < piece.rows; ++row) {
            std::size_t const index =
                index_at(schema_->format, piece.array->buffers[1], piece.first + row);
            copy_numbers(dictionary, *dtype, static_cast<std::size_t>(dictionary.offset) + index, 1,
                         to + (piece.before + row) * bytes);
        }
    }
    return out;
}

ArrowColumn::Piece const& ArrowColumn::piece_of(std::size_t row) const {
    auto const after = std::upper_bound(
        pieces_.begin(), pieces_.end(), row,
        [](std::size_t wanted, Piece const& piece) { return wanted < piece.before + piece.rows; });
    return *after;
}

void ArrowColumn::read(std::size_t begin, std::size_t count, std::string_view* strings,
                       std::string& room) const {
    auto const put = [&](std::string_view& out, Placed const& placed) {
        out = placed.string;
        if (placed.end < kBefore) [[unlikely]]
            out = append_preceded(out, room);
    };
    with_layout(values_->format, [&](auto const& string_at) {
        for (std::size_t done = 0; done < count;) {
            Piece const& piece = piece_of(begin + done);
            std::size_t const row = begin + done - piece.before;
            std::size_t const here = std::min(count - done, piece.rows - row);
            ArrowArray const& array = *piece.array;
            std::size_t const first = piece.first + row;
            std::string_view* const out = strings + done;
            if (schema_->dictionary == nullptr) {
                for (std::size_t i = 0; i < here; ++i) put(out[i], string_at(array, first + i));
            } else {
                ArrowArray const& words = *array.dictionary;
                auto const offset = static_cast<std::size_t>(words.offset);
                for (std::size_t i = 0; i < here; ++i) {
                    std::size_t const word = index_at(schema_->format, array.buffers[1], first + i);
                    put(out[i], string_at(words, offset + word));
                }
            }
            done += here;
        }
    });
}

ArrowData import_arrow(nb::handle object, char const* argument) {
    auto imported = std::make_shared<Imported>();
    if (nb::hasattr(object, "__arrow_c_stream__")) {
        import_stream(object, argument, *imported);
    } else {
        import_array(object, argument, *imported);
    }
    ArrowSchema const& schema = imported->schema;
    ArrowData out;
    out.is_frame = std::string_view(schema.format) == "+s";
    std::size_t const count = out.is_frame ? static_cast<std::size_t>(schema.n_children) : 1;
    for (std::size_t i = 0; i < count; ++i) {
        ArrowSchema const* const type = out.is_frame ? schema.children[i] : &schema;
        std::vector<ArrowColumn::Piece> pieces;
        for (auto const& array : imported->arrays) {
            ArrowArray const* const own = out.is_frame ? array->children[i] : array.get();
            // A frame's own offset is that of all its columns.
            std::int64_t const first = own->offset + (out.is_frame ? array->offset : 0);
            pieces.push_back(
                {own, static_cast<std::size_t>(first), static_cast<std::size_t>(array->length), 0});
        }
        out.names.emplace_back(type->name != nullptr ? type->name : "");
        out.columns.push_back(std::make_shared<ArrowColumn>(imported, type, std::move(pieces)));
    }
    return out;
}

void bind_arrow(nb::module_& m) {
    using Columns =
        std::tuple<bool, std::vector<std::string>, std::vector<std::shared_ptr<ArrowColumn>>>;
    nb::class_<ArrowColumn>(m, "ArrowColumn", "A column read through Arrow's C data interface.")
        .def("rows", &ArrowColumn::rows)
        .def("format", &ArrowColumn::format)
        .def("is_text", &ArrowColumn::is_text)
        .def("nulls", [](ArrowColumn const& self) { return self.nulls(); })
        .def(
            "numbers",
            [](ArrowColumn const& self, std::string const& argument) {
                return without_gil([&] { return self.numbers(argument); });
            },
            nb::arg("argument"));
    m.def(
        "import_arrow",
        [](nb::handle object, std::string const& argument) {
            ArrowData data = import_arrow(object, argument.c_str());
            return Columns(data.is_frame, std::move(data.names), std::move(data.columns));
        },
        nb::arg("object"), nb::arg("argument"), "(is a frame, names, columns).");
}

}  // namespace tensorhash::bindings
