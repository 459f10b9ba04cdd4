// Widening and narrowing, one loop per dtype.
#include "data/columns.hpp"

#include <bit>
#include <cstring>
#include <type_traits>

#include "tensor/numbers.hpp"
#include "tensor/stored.hpp"

namespace tensorhash::data {
namespace {

/// The 8-byte type of a computed one.
template <class Computed>
using Widened =
    std::conditional_t<std::is_floating_point_v<Computed>, double,
                       std::conditional_t<std::is_signed_v<Computed>, std::int64_t, std::uint64_t>>;

template <class Type>
void widen_rows(Column const& column, std::size_t begin, std::size_t count, std::uint64_t* out) {
    unsigned char const* at = column.data + static_cast<std::ptrdiff_t>(begin) * column.step;
    for (std::size_t i = 0; i < count; ++i, at += column.step) {
        typename Type::Stored stored;
        std::memcpy(&stored, at, sizeof(stored));  // the array may be unaligned
        auto const value = static_cast<Widened<typename Type::Computed>>(Type::load(stored));
        out[i] = std::bit_cast<std::uint64_t>(value);
    }
}

template <class Type>
void narrow_rows(std::uint64_t const* words, std::size_t step, std::size_t count, void* out,
                 std::size_t width) {
    auto* const to = static_cast<typename Type::Stored*>(out);
    for (std::size_t i = 0; i < count; ++i) {
        if constexpr (std::is_same_v<Type, Truth>) {
            to[i * width] = words[i * step] != 0 ? 1 : 0;
        } else {
            auto const value = std::bit_cast<Widened<typename Type::Computed>>(words[i * step]);
            to[i * width] = Type::store(static_cast<typename Type::Computed>(value));
        }
    }
}

}  // namespace

std::vector<Column> columns_of(Tensor const& array) {
    auto const* const data = static_cast<unsigned char const*>(array.data());
    if (array.rank() == 1) {
        return {{data, static_cast<std::ptrdiff_t>(array.byte_strides()[0]), array.dtype()}};
    }
    std::size_t const bytes = byte_size(array.dtype());
    auto const width = static_cast<std::size_t>(
        num_elements(Shape(array.shape().begin() + 1, array.shape().end())));
    std::vector<Column> columns(width);
    for (std::size_t i = 0; i < width; ++i) {
        columns[i] = {data + i * bytes, static_cast<std::ptrdiff_t>(width * bytes), array.dtype()};
    }
    return columns;
}

std::uint64_t const* widen(Column const& column, std::size_t begin, std::size_t count,
                           std::uint64_t* room) {
    bool const is_word = byte_size(column.dtype) == 8 && column.step == 8;
    if (is_word && reinterpret_cast<std::uintptr_t>(column.data) % 8 == 0) {
        return reinterpret_cast<std::uint64_t const*>(column.data) + begin;
    }
    visit_number(column.dtype, "values",
                 [&](auto form) { widen_rows<decltype(form)>(column, begin, count, room); });
    return room;
}

void narrow(std::uint64_t const* words, std::size_t step, std::size_t count, Dtype dtype, void* out,
            std::size_t width) {
    visit_number(dtype, "values",
                 [&](auto form) { narrow_rows<decltype(form)>(words, step, count, out, width); });
}

}  // namespace tensorhash::data
