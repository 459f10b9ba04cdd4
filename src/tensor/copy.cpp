// Copies strided to contiguous memory, in parallel over the outermost dimension.
#include "tensor/copy.hpp"

#include <cstring>

#include "runtime/parallel.hpp"

namespace tensorhash {
namespace {

struct Layout {
    Shape shape;
    Shape strides;
};

/// Merges each dimension that is dense inside its outer neighbour: fewer loops, longer copies.
Layout merged(Shape const& shape, Shape const& strides) {
    Layout out;
    for (std::size_t i = 0; i < shape.size(); ++i) {
        if (shape[i] == 1) {
            continue;
        }
        if (!out.shape.empty() && out.strides.back() == strides[i] * shape[i]) {
            out.shape.back() *= shape[i];
            out.strides.back() = strides[i];
        } else {
            out.shape.push_back(shape[i]);
            out.strides.push_back(strides[i]);
        }
    }
    return out;
}

template <std::size_t Bytes>
void copy_elements(unsigned char* to, unsigned char const* from, std::int64_t count,
                   std::int64_t stride) {
    for (std::int64_t i = 0; i < count; ++i) {
        std::memcpy(to + i * static_cast<std::int64_t>(Bytes), from + i * stride, Bytes);
    }
}

void copy_innermost(unsigned char* to, unsigned char const* from, std::int64_t count,
                    std::int64_t stride, std::size_t bytes) {
    if (stride == static_cast<std::int64_t>(bytes)) {
        std::memcpy(to, from, static_cast<std::size_t>(count) * bytes);
        return;
    }
    switch (bytes) {
        case 1:
            return copy_elements<1>(to, from, count, stride);
        case 2:
            return copy_elements<2>(to, from, count, stride);
        case 4:
            return copy_elements<4>(to, from, count, stride);
        default:
            return copy_elements<8>(to, from, count, stride);
    }
}

void copy_dimensions(unsigned char*& to, unsigned char const* from, Layout const& layout,
                     std::size_t dimension, std::int64_t begin, std::int64_t end,
                     std::size_t bytes) {
    std::int64_t const stride = layout.strides[dimension];
    if (dimension + 1 == layout.shape.size()) {
        copy_innermost(to, from + begin * stride, end - begin, stride, bytes);
        to += static_cast<std::size_t>(end - begin) * bytes;
        return;
    }
    for (std::int64_t i = begin; i < end; ++i) {
        copy_dimensions(to, from + i * stride, layout, dimension + 1, 0,
                        layout.shape[dimension + 1], bytes);
    }
}

}  // namespace

void gather_strided(void* to, void const* from, Shape const& shape, Shape const& byte_strides,
                    std::size_t element_bytes) {
    std::int64_t const elements = num_elements(shape);
    if (elements == 0) {
        return;
    }
    Layout layout = merged(shape, byte_strides);
    if (layout.shape.empty()) {
        layout = {{1}, {static_cast<std::int64_t>(element_bytes)}};
    }
    auto const rows = static_cast<std::size_t>(layout.shape[0]);
    std::size_t const row_elements = static_cast<std::size_t>(elements) / rows;
    std::size_t const grain = std::max<std::size_t>(1, (std::size_t{1} << 16) / row_elements);
    runtime::for_ranges(rows, grain, [&](std::size_t begin, std::size_t end) {
        auto* out = static_cast<unsigned char*>(to) + begin * row_elements * element_bytes;
        copy_dimensions(out, static_cast<unsigned char const*>(from), layout, 0,
                        static_cast<std::int64_t>(begin), static_cast<std::int64_t>(end),
                        element_bytes);
    });
}

}  // namespace tensorhash
