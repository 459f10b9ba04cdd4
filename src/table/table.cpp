// Table: construction, lookup, memory use and validation.
#include "table/table.hpp"

#include <bit>
#include <string>
#include <utility>

#include "backend/table_errors.hpp"
#include "runtime/seed.hpp"
#include "tensor/bools.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::table {
namespace {

Column make_column(Element const& element, std::uint64_t capacity) {
    std::size_t const bytes = element.bytes();
    if (bytes != 0 && capacity > (std::uint64_t{1} << 62) / bytes) {
        throw std::bad_alloc();
    }
    return {bytes, runtime::make_shared_block(capacity * bytes, runtime::Fill::Zero)};
}

std::vector<Column> make_columns(std::vector<Element> const& elements, std::uint64_t capacity) {
    std::vector<Column> columns;
    for (Element const& element : elements) {
        columns.push_back(make_column(element, capacity));
    }
    return columns;
}

}  // namespace

step::KeyFormat format_of(Element const& key) noexcept {
    std::uint32_t const float_bytes = key.dtype == Dtype::Float32   ? 4
                                      : key.dtype == Dtype::Float64 ? 8
                                                                    : 0;
    return {static_cast<std::uint32_t>(key.bytes()), float_bytes};
}

Column copy_column(Column const& column, std::uint64_t used, std::uint64_t capacity) {
    std::size_t const bytes = used * column.row_bytes;
    Column copy{column.row_bytes, runtime::make_shared_block(capacity * column.row_bytes,
                                                             runtime::Fill::Zero, bytes)};
    runtime::copy_bytes(copy.block->data(), column.block->data(), bytes);
    return copy;
}

Table::Table(Element const& key, std::vector<Element> const& values, std::uint64_t capacity,
             std::optional<std::uint64_t> seed)
    : key_(key), elements_(values), format_(format_of(key)), capacity_(capacity),
      keys_(make_column(key, capacity)), values_(make_columns(values, capacity)),
      index_(format_, BucketIndex::buckets_for(format_, capacity),
             seed ? *seed : runtime::new_seed()),
      live_((capacity + 63) / 64, 0) {}

Table::Table(Table const& other)
    : key_(other.key_), elements_(other.elements_), format_(other.format_),
      capacity_(other.capacity_), keys_(copy_column(other.keys_, other.top_, capacity_)),
      index_(other.index_.copy()), top_(other.top_), free_(other.free_), live_(other.live_) {
    for (Column const& column : other.values_) {
        values_.push_back(copy_column(column, top_, capacity_));
    }
}

std::uint64_t Table::memory_for(Element const& key, std::vector<Element> const& values,
                                std::uint64_t capacity) {
    std::uint64_t row_bytes = key.bytes();
    for (Element const& element : values) {
        row_bytes += element.bytes();
    }
    std::uint64_t const index =
        BucketIndex::buckets_for(format_of(key), capacity) * sizeof(step::NarrowBucket);
    std::uint64_t const live = (capacity + 63) / 64 * sizeof(std::uint64_t);
    std::uint64_t bytes = 0;
    if (__builtin_mul_overflow(row_bytes, capacity, &bytes) ||
        __builtin_add_overflow(bytes, index + live, &bytes)) {
        return UINT64_MAX;
    }
    return bytes;
}

void Table::find(Bytes keys, std::size_t rows, Answers out) const {
    index_.find(key_buffer(), {keys, top_, nullptr, out.indices, out.mask}, rows);
}

void Table::clear() noexcept {
    index_.clear();
    top_ = 0;
    free_.clear();
    std::fill(live_.begin(), live_.end(), 0);
}

MemoryUsage Table::memory_usage() const noexcept {
    MemoryUsage usage;
    usage.keys = keys_.block->bytes();
    for (Column const& column : values_) {
        usage.values += column.block->bytes();
    }
    usage.index = index_.bytes();
    usage.bookkeeping =
        free_.capacity() * sizeof(std::uint32_t) + live_.capacity() * sizeof(std::uint64_t);
    return usage;
}

void Table::validate() const {
    std::uint64_t live_count = 0;
    for (std::uint64_t const word : live_) {
        live_count += static_cast<std::uint64_t>(std::popcount(word));
    }
    if (top_ > capacity_ || live_count != size()) {
        throw CorruptTable("table: " + std::to_string(live_count) + " live indices, expected " +
                           std::to_string(size()) + " of at most " + std::to_string(capacity_));
    }
    validate_free_stack();
    validate_index();
}

void Table::validate_free_stack() const {
    std::vector<std::uint64_t> seen = live_;
    for (std::uint32_t const index : free_) {
        std::uint64_t const bit = std::uint64_t{1} << (index % 64);
        if (index >= top_ || (seen[index / 64] & bit) != 0) {
            throw CorruptTable("table: free index " + std::to_string(index) +
                               " is live, listed twice or too large");
        }
        seen[index / 64] |= bit;
    }
    for (std::uint64_t index = top_; index < live_.size() * 64; ++index) {
        if (is_live(index)) {
            throw CorruptTable("table: index " + std::to_string(index) + " is live beyond the top");
        }
    }
}

void Table::validate_index() const {
    if (std::uint64_t const entries = index_.count_entries(); entries != size()) {
        throw CorruptTable("table: the index holds " + std::to_string(entries) +
                           " entries, expected " + std::to_string(size()));
    }
    runtime::Block found(top_ * sizeof(std::uint32_t));
    runtime::Block mask(top_);
    auto* const found_at = reinterpret_cast<std::uint32_t*>(found.data());
    find(key_buffer(), top_, {found_at, mask.data()});
    bool const bool_keys = key_.dtype == Dtype::Bool;
    for (std::uint32_t index = 0; index < top_; ++index) {
        if (!is_live(index)) {
            continue;
        }
        if (bool_keys && !are_canonical_bools(keys_.row(index), keys_.row_bytes)) {
            backend::fail_bool_key(index);
        }
        if (found_at[index] != index) {
            backend::fail_lookup(index, found_at[index]);
        }
    }
}

ProbeLengths Table::probe_lengths(Bytes keys, std::size_t rows) const {
    return index_.probe_lengths(key_buffer(), {keys, top_, nullptr, nullptr, nullptr}, rows);
}

}  // namespace tensorhash::table
