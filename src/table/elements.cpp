// Casts and copies of rows on the CPU, by plain loops.
#include "table/elements.hpp"

#include <cstring>
#include <vector>

#include "runtime/parallel.hpp"
#include "tensor/casts.hpp"
#include "tensor/numbers.hpp"
#include "tensor/row_numbers.hpp"

namespace tensorhash::table {
namespace {

constexpr std::size_t kGrain = std::size_t{1} << 14;

/// Where each picked row is. Throws before anything is copied.
std::vector<std::uint32_t> row_numbers(backend::PickedRows const& picked) {
    auto const rows = static_cast<std::int64_t>(picked.rows);
    std::vector<std::uint32_t> numbers(picked.count);
    for (std::uint64_t i = 0; i < picked.count; ++i) {
        std::int64_t const given = picked.indices[i];
        std::int64_t const number = given < 0 ? given + rows : given;
        if (number < 0 || number >= rows) {
            backend::fail_row_number(i, given, picked.rows);
        }
        numbers[i] = static_cast<std::uint32_t>(number);
    }
    return numbers;
}

void copy_elements(unsigned char* to, backend::Paste const& request, std::size_t axis,
                   backend::Bytes& from) {
    if (axis == request.shape.size()) {
        std::memcpy(to, from, request.element_bytes);
        from += request.element_bytes;
        return;
    }
    for (std::int64_t i = 0; i < request.shape[axis]; ++i) {
        copy_elements(to + i * request.byte_strides[axis], request, axis + 1, from);
    }
}

}  // namespace

void cast_elements(backend::Cast const& request) {
    visit_number(request.from_dtype, "tensor", [&](auto from) {
        visit_number(request.to_dtype, "dtype", [&](auto to) {
            using From = decltype(from);
            using To = decltype(to);
            auto const* const source = reinterpret_cast<typename From::Stored const*>(request.from);
            auto* const target = reinterpret_cast<typename To::Stored*>(request.to);
            runtime::for_ranges(request.count, kGrain, [&](std::size_t begin, std::size_t end) {
                for (std::size_t i = begin; i < end; ++i) {
                    target[i] = converted<To>(AnyNumber::of(From::load(source[i])));
                }
            });
        });
    });
}

Tensor true_rows(backend::Bytes mask, std::uint64_t rows) {
    return numbers_where<std::int64_t>(rows, [&](std::size_t row) { return mask[row] != 0; });
}

void take_rows(backend::PickedRows const& picked, backend::Bytes from, unsigned char* to) {
    std::vector<std::uint32_t> const numbers = row_numbers(picked);
    std::uint64_t const bytes = picked.row_bytes;
    if (bytes == 0) return;  // the arrays may be null, which memcpy must not see
    runtime::for_ranges(numbers.size(), kGrain, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            std::memcpy(to + i * bytes, from + numbers[i] * bytes, bytes);
        }
    });
}

void put_rows(backend::PickedRows const& picked, backend::Bytes from, unsigned char* to) {
    std::vector<std::uint32_t> const numbers = row_numbers(picked);
    std::uint64_t const bytes = picked.row_bytes;
    if (bytes == 0) return;
    for (std::size_t i = 0; i < numbers.size(); ++i) {  // in order: the last row wins
        std::memcpy(to + numbers[i] * bytes, from + i * bytes, bytes);
    }
}

void paste(backend::Paste const& request) {
    backend::Bytes from = request.from;
    copy_elements(request.to, request, 0, from);
}

}  // namespace tensorhash::table
