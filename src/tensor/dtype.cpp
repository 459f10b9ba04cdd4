// Names and sizes of the element types.
#include "tensorhash/dtype.hpp"

#include <array>
#include <limits>

#include "tensorhash/error.hpp"

namespace tensorhash {
namespace {

struct Row {
    Dtype dtype;
    std::string_view name;
    std::size_t bytes;
    bool key;
};

constexpr std::array kDtypes{
    Row{Dtype::Undefined, "undefined", 0, false},
    Row{Dtype::Bool, "bool", 1, true},
    Row{Dtype::Int8, "int8", 1, true},
    Row{Dtype::Int16, "int16", 2, true},
    Row{Dtype::Int32, "int32", 4, true},
    Row{Dtype::Int64, "int64", 8, true},
    Row{Dtype::UInt8, "uint8", 1, true},
    Row{Dtype::UInt16, "uint16", 2, true},
    Row{Dtype::UInt32, "uint32", 4, true},
    Row{Dtype::UInt64, "uint64", 8, true},
    Row{Dtype::Float16, "float16", 2, false},
    Row{Dtype::BFloat16, "bfloat16", 2, false},
    Row{Dtype::Float32, "float32", 4, true},
    Row{Dtype::Float64, "float64", 8, true},
};

Row const& row(Dtype dtype) noexcept {
    auto const at = static_cast<std::size_t>(dtype);
    return kDtypes[at < kDtypes.size() ? at : 0];
}

}  // namespace

std::size_t byte_size(Dtype dtype) noexcept { return row(dtype).bytes; }
std::string_view name(Dtype dtype) noexcept { return row(dtype).name; }
bool is_key_dtype(Dtype dtype) noexcept { return row(dtype).key; }

Dtype dtype_from_name(std::string_view name) {
    std::string names;
    for (Row const& r : kDtypes) {
        if (r.bytes == 0) {
            continue;
        }
        if (r.name == name) {
            return r.dtype;
        }
        names += names.empty() ? "" : ", ";
        names += r.name;
    }
    throw TypeError("dtype: expected one of " + names + "; got \"" + std::string(name) + "\"");
}

std::int64_t num_elements(Shape const& shape) {
    std::int64_t product = 1;
    for (std::int64_t const size : shape) {
        if (size < 0) {
            throw ValueError("shape: dimensions cannot be negative, got " + to_string(shape));
        }
        if (size != 0 && product > std::numeric_limits<std::int64_t>::max() / size) {
            throw ValueError("shape: more elements than 64 bits can count, got " +
                             to_string(shape));
        }
        product *= size;
    }
    return product;
}

std::string to_string(Shape const& shape) {
    std::string text = "(";
    for (std::size_t i = 0; i < shape.size(); ++i) {
        text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
    }
    return text + (shape.size() == 1 ? ",)" : ")");
}

}  // namespace tensorhash
