// The live entries: list, copy out, show as tensors, compact.
#include <algorithm>
#include <bit>
#include <utility>

#include "runtime/parallel.hpp"
#include "runtime/scan.hpp"
#include "table/rows.hpp"
#include "table/table.hpp"
#include "tensor/shapes.hpp"

namespace tensorhash::table {
namespace {

Tensor column_tensor(Column const& column, Element const& element, std::uint64_t capacity) {
    return Tensor::borrow(static_cast<void*>(column.block->data()),
                          with_rows(capacity, element.shape), element.dtype, column.block);
}

void gather_column(Column const& column, backend::Gather const& rows, void* out) {
    gather_to(static_cast<unsigned char*>(out), rows.places, column.block->data(), column.row_bytes,
              rows.indices, rows.rows, rows.missing.data, rows.missing.step);
}

bool lies_in(Column const& column, void const* data, std::size_t bytes) noexcept {
    auto const* const begin = column.block->data();
    auto const* const at = static_cast<unsigned char const*>(data);
    return at < begin + column.block->bytes() && at + bytes > begin;
}

}  // namespace

std::size_t Table::list(std::uint64_t begin, std::size_t limit, std::int32_t* out) const {
    if (begin == 0 && limit >= size()) {
        list_all(out);
        return size();
    }
    std::size_t found = 0;
    for (std::uint64_t word = begin / 64; word < live_.size() && found < limit; ++word) {
        std::uint64_t bits = live_[word];
        if (word == begin / 64) {
            bits &= ~std::uint64_t{0} << (begin % 64);
        }
        for (; bits != 0 && found < limit; bits &= bits - 1) {
            out[found++] = static_cast<std::int32_t>(
                word * 64 + static_cast<std::uint64_t>(std::countr_zero(bits)));
        }
    }
    return found;
}

void Table::list_all(std::int32_t* out) const {
    if (free_.empty()) {
        runtime::for_ranges(top_, 1 << 16, [&](std::size_t begin, std::size_t end) {
            for (std::size_t i = begin; i < end; ++i) {
                out[i] = static_cast<std::int32_t>(i);
            }
        });
        return;
    }
    runtime::Chunks const chunks = runtime::cut(top_, 1 << 16);
    runtime::select(
        chunks,
        [&](std::size_t begin, std::size_t end) {
            std::size_t count = 0;
            for (std::size_t word = begin / 64; word < (end + 63) / 64; ++word) {
                count += static_cast<std::size_t>(std::popcount(live_[word]));
            }
            return count;
        },
        [](std::size_t) {},
        [&](std::size_t begin, std::size_t end, std::size_t place) {
            std::int32_t* next = out + place;
            for (std::size_t word = begin / 64; word < (end + 63) / 64; ++word) {
                for (std::uint64_t bits = live_[word]; bits != 0; bits &= bits - 1) {
                    *next++ = static_cast<std::int32_t>(
                        word * 64 + static_cast<std::size_t>(std::countr_zero(bits)));
                }
            }
        });
}

void Table::gather(std::size_t column, backend::Gather const& rows, void* out) const {
    gather_column(values_[column], rows, out);
}

void Table::gather_keys(backend::Gather const& rows, void* out) const {
    gather_column(keys_, rows, out);
}

void Table::items(void* keys, std::span<void* const> values) const {
    runtime::Block listed(size() * sizeof(std::uint32_t));
    list_all(reinterpret_cast<std::int32_t*>(listed.data()));
    backend::Gather const rows{reinterpret_cast<std::uint32_t const*>(listed.data()), size()};
    gather_keys(rows, keys);
    for (std::size_t i = 0; i < values.size(); ++i) {
        gather(i, rows, values[i]);
    }
}

Tensor Table::key_tensor() const { return column_tensor(keys_, key_, capacity_).as_read_only(); }

backend::LookupMemory Table::lookup_memory() const noexcept {
    step::IndexView const view = index_.view(key_buffer());
    return {view.buckets, view.bucket_count, view.key_buffer, seed()};
}

Tensor Table::value_tensor(std::size_t column) const {
    return column_tensor(values_[column], elements_[column], capacity_);
}

bool Table::overlaps(void const* data, std::size_t bytes) const noexcept {
    bool shared = lies_in(keys_, data, bytes);
    for (Column const& column : values_) {
        shared = shared || lies_in(column, data, bytes);
    }
    return shared;
}

void Table::compact(std::int32_t* old_to_new) { finish_compact(prepare_compact(old_to_new)); }

Compacted Table::prepare_compact(std::int32_t* old_to_new) const {
    std::fill(old_to_new, old_to_new + capacity_, -1);
    runtime::Block listed(size() * sizeof(std::int32_t));
    auto* const old_indices = reinterpret_cast<std::int32_t*>(listed.data());
    list_all(old_indices);
    std::uint64_t const count = size();
    for (std::uint64_t i = 0; i < count; ++i) {
        old_to_new[old_indices[i]] = static_cast<std::int32_t>(i);
    }
    Compacted compacted;
    if (free_.empty()) {
        return compacted;
    }
    // New buffers: views keep showing the old content, and a failed allocation changes nothing.
    auto const moved = [&](Column const& column) {
        Column copy{column.row_bytes,
                    runtime::make_shared_block(capacity_ * column.row_bytes, runtime::Fill::Zero)};
        gather_rows(copy.block->data(), column.block->data(), column.row_bytes,
                    reinterpret_cast<std::uint32_t const*>(old_indices), count);
        return copy;
    };
    compacted.keys = moved(keys_);
    for (Column const& column : values_) {
        compacted.values.push_back(moved(column));
    }
    compacted.live.resize(live_.size(), 0);
    for (std::uint64_t i = 0; i < count; ++i) {
        compacted.live[i / 64] |= std::uint64_t{1} << (i % 64);
    }
    compacted.count = count;
    compacted.index.emplace(format_, index_.buckets(), seed());
    return compacted;
}

void Table::finish_compact(Compacted&& compacted) noexcept {
    if (!compacted.index) {
        return;
    }
    keys_ = std::move(compacted.keys);
    values_ = std::move(compacted.values);
    live_ = std::move(compacted.live);
    free_.clear();
    top_ = static_cast<std::uint32_t>(compacted.count);
    compacted.index->place(key_buffer(), live_.data(), top_, compacted.count);
    index_ = std::move(*compacted.index);
}

}  // namespace tensorhash::table
