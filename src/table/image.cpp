// The table's content as an image in host memory, and a table made from one.
#include <utility>

#include "backend/table_errors.hpp"
#include "runtime/memory.hpp"
#include "table/rows.hpp"
#include "table/table.hpp"
#include "tensor/bools.hpp"

namespace tensorhash::table {

backend::TableImage Table::to_cpu() const {
    backend::TableImage image;
    image.capacity = capacity_;
    image.top = top_;
    image.free = free_;
    image.rows = top_;
    image.keys = keys_.block->data();
    for (Column const& column : values_) {
        image.values.push_back(column.block->data());
    }
    return image;
}

void Table::from_cpu(backend::TableImage const& image) {
    fill(keys_, key_, image.keys, image);
    for (std::size_t i = 0; i < values_.size(); ++i) {
        fill(values_[i], elements_[i], image.values[i], image);
    }
    restore(image.top, image.free);
}

/// Copies the image's rows to their buffer indices. Bools become 0 or 1.
void Table::fill(Column& column, Element const& element, Bytes rows,
                 backend::TableImage const& image) const {
    if (image.indices == nullptr) {
        runtime::copy_bytes(column.block->data(), rows, image.rows * column.row_bytes);
    } else {
        std::vector<unsigned char> const all(image.rows, 1);
        scatter_rows(column.block->data(), rows, column.row_bytes, image.indices, all.data(),
                     image.rows);
    }
    if (element.dtype == Dtype::Bool) {
        canonicalize_bools(column.block->data(), image.top * column.row_bytes);
    }
}

/// The indices below `top` that are not in `free` become live; their rows are in the buffers.
void Table::restore(std::uint32_t top, std::span<std::uint32_t const> free) {
    if (top > capacity_ || free.size() > top) {
        backend::fail_sizes(top, free.size(), capacity_);
    }
    FreeStack stack(free.begin(), free.end());
    std::vector<std::uint64_t> live(live_.size(), 0);
    for (std::uint32_t i = 0; i < top; ++i) {
        live[i / 64] |= std::uint64_t{1} << (i % 64);
    }
    for (std::uint32_t const buf_index : free) {
        std::uint64_t const bit = std::uint64_t{1} << (buf_index % 64);
        if (buf_index >= top || (live[buf_index / 64] & bit) == 0) {
            backend::fail_free_index(buf_index);
        }
        live[buf_index / 64] &= ~bit;
    }
    top_ = top;
    free_ = std::move(stack);
    live_ = std::move(live);
    index_.clear();
    index_.place(key_buffer(), live_.data(), top_, size());
    validate();
}

}  // namespace tensorhash::table
