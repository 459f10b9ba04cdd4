// The table's life apart from growing: reading, erasing, listing, compacting, checking itself.
#include "table/table.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <string>
#include <utility>

#include "map/arguments.hpp"
#include "runtime/parallel.hpp"
#include "runtime/seed.hpp"
#include "table/rows.hpp"
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

KeyLayout layout_of(Element const& key) noexcept {
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
    : layout_(layout_of(key)), bool_keys_(key.dtype == Dtype::Bool), elements_(values),
      capacity_(capacity), keys_(make_column(key, capacity)),
      values_(make_columns(values, capacity)),
      index_(layout_, Index::lines_for(layout_, capacity), seed ? *seed : runtime::new_seed()),
      live_((capacity + 63) / 64, 0) {}

Table::Table(Table const& other)
    : layout_(other.layout_), bool_keys_(other.bool_keys_), elements_(other.elements_),
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
        Index::lines_for(layout_of(key), capacity) * sizeof(kernel::NarrowLine);
    std::uint64_t const live = (capacity + 63) / 64 * sizeof(std::uint64_t);
    std::uint64_t bytes = 0;
    if (__builtin_mul_overflow(row_bytes, capacity, &bytes) ||
        __builtin_add_overflow(bytes, index + live, &bytes)) {
        return UINT64_MAX;
    }
    return bytes;
}

void Table::find(Bytes keys, std::size_t rows, Answers out) const {
    index_.find(key_buffer(), {keys, top_, nullptr, out.numbers, out.mask}, rows);
}

void Table::erase(Bytes keys, std::size_t rows, unsigned char* mask) {
    Erasing erasing = prepare_erase(rows);
    finish_erase(erasing, keys, rows, mask);
}

Erasing Table::prepare_erase(std::size_t rows) {
    Erasing erasing{runtime::Block(rows * sizeof(std::uint32_t)),
                    runtime::Block(rows * sizeof(std::uint32_t))};
    free_.reserve(free_.size() + std::min<std::uint64_t>(rows, size()));
    return erasing;
}

void Table::finish_erase(Erasing& erasing, Bytes keys, std::size_t rows,
                         unsigned char* mask) noexcept {
    auto* const numbers = reinterpret_cast<std::uint32_t*>(erasing.freed.data());
    kernel::BatchView const batch{
        keys, top_, reinterpret_cast<std::uint32_t*>(erasing.positions.data()), numbers, mask};
    index_.locate(key_buffer(), batch, rows);
    runtime::Chunks const chunks = runtime::cut(rows, runtime::kGrain);
    // Rows that ask for one entry twice are rare, and the bits of the live entries tell whether there are any.
    bool const twice = clear_live(batch, chunks);
    std::uint64_t const erased = index_.release(key_buffer(), batch, rows, twice);
    if (erased == 0) {
        return;
    }
    std::array<std::uint64_t, runtime::kMaxChunks + 1> at;
    at[0] = free_.size();
    runtime::for_chunks(chunks, [&](std::size_t chunk, std::size_t begin, std::size_t end) {
        at[chunk + 1] = static_cast<std::uint64_t>(std::count(mask + begin, mask + end, 1));
    });
    for (std::size_t chunk = 0; chunk < chunks.count; ++chunk) {
        at[chunk + 1] += at[chunk];
    }
    free_.resize(free_.size() + erased);
    runtime::for_chunks(chunks, [&](std::size_t chunk, std::size_t begin, std::size_t end) {
        std::uint64_t next = at[chunk];
        for (std::size_t row = begin; row < end; ++row) {
            if (mask[row] != 0) {
                free_[next++] = numbers[row];
            }
        }
    });
}

/// Takes the bits of the located rows' entries away; true if some entry was located twice.
bool Table::clear_live(kernel::BatchView const& batch, runtime::Chunks const& chunks) noexcept {
    std::atomic<bool> twice{false};
    bool const shared = chunks.shared();
    runtime::for_chunks(chunks, [&](std::size_t, std::size_t begin, std::size_t end) {
        bool here = false;
        for (std::size_t row = begin; row < end; ++row) {
            if (batch.mask[row] == 0) {
                continue;
            }
            std::uint64_t const bit = std::uint64_t{1} << (batch.numbers[row] % 64);
            std::uint64_t& word = live_[batch.numbers[row] / 64];
            std::uint64_t const before =
                shared ? std::atomic_ref(word).fetch_and(~bit, std::memory_order_relaxed)
                       : std::exchange(word, word & ~bit);
            here |= (before & bit) == 0;
        }
        if (here) {
            twice.store(true, std::memory_order_relaxed);
        }
    });
    return twice.load(std::memory_order_relaxed);
}

void Table::list(std::int32_t* out) const {
    if (free_.empty()) {
        runtime::for_ranges(top_, 1 << 16, [&](std::size_t begin, std::size_t end) {
            for (std::size_t i = begin; i < end; ++i) {
                out[i] = static_cast<std::int32_t>(i);
            }
        });
        return;
    }
    runtime::Chunks const chunks = runtime::cut(top_, 1 << 16);
    std::array<std::uint64_t, runtime::kMaxChunks + 1> at;
    at[0] = 0;
    runtime::for_chunks(chunks, [&](std::size_t chunk, std::size_t begin, std::size_t end) {
        std::uint64_t count = 0;
        for (std::size_t word = begin / 64; word < (end + 63) / 64; ++word) {
            count += static_cast<std::uint64_t>(std::popcount(live_[word]));
        }
        at[chunk + 1] = count;
    });
    for (std::size_t chunk = 0; chunk < chunks.count; ++chunk) {
        at[chunk + 1] += at[chunk];
    }
    runtime::for_chunks(chunks, [&](std::size_t chunk, std::size_t begin, std::size_t end) {
        std::int32_t* next = out + at[chunk];
        for (std::size_t word = begin / 64; word < (end + 63) / 64; ++word) {
            for (std::uint64_t bits = live_[word]; bits != 0; bits &= bits - 1) {
                *next++ = static_cast<std::int32_t>(
                    word * 64 + static_cast<std::size_t>(std::countr_zero(bits)));
            }
        }
    });
}

void Table::clear() noexcept {
    index_.clear();
    top_ = 0;
    free_.clear();
    std::fill(live_.begin(), live_.end(), 0);
}

void Table::compact(std::int32_t* old_to_new) { finish_compact(prepare_compact(old_to_new)); }

Compacted Table::prepare_compact(std::int32_t* old_to_new) const {
    std::fill(old_to_new, old_to_new + capacity_, -1);
    runtime::Block listed(size() * sizeof(std::int32_t));
    auto* const old_numbers = reinterpret_cast<std::int32_t*>(listed.data());
    list(old_numbers);
    std::uint64_t const count = size();
    for (std::uint64_t i = 0; i < count; ++i) {
        old_to_new[old_numbers[i]] = static_cast<std::int32_t>(i);
    }
    Compacted compacted;
    if (free_.empty()) {
        return compacted;
    }
    // New buffers: views of the old ones keep what they show, and a failed allocation costs nothing.
    auto const moved = [&](Column const& column) {
        Column copy{column.row_bytes,
                    runtime::make_shared_block(capacity_ * column.row_bytes, runtime::Fill::Zero)};
        gather_rows(copy.block->data(), column.block->data(), column.row_bytes,
                    reinterpret_cast<std::uint32_t const*>(old_numbers), count);
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
    compacted.index.emplace(layout_, index_.lines(), seed());
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

void Table::restore(std::uint32_t top, std::vector<std::uint32_t> free) {
    if (top > capacity_ || free.size() > top) {
        throw CorruptTable("table: " + std::to_string(top) + " indices, " +
                           std::to_string(free.size()) +
                           " of them free, do not fit a capacity of " + std::to_string(capacity_));
    }
    std::vector<std::uint64_t> live(live_.size(), 0);
    for (std::uint32_t i = 0; i < top; ++i) {
        live[i / 64] |= std::uint64_t{1} << (i % 64);
    }
    for (std::uint32_t const number : free) {
        std::uint64_t const bit = std::uint64_t{1} << (number % 64);
        if (number >= top || (live[number / 64] & bit) == 0) {
            throw CorruptTable("table: free index " + std::to_string(number) +
                               " is out of range or listed twice");
        }
        live[number / 64] &= ~bit;
    }
    top_ = top;
    free_ = std::move(free);
    live_ = std::move(live);
    index_.clear();
    index_.place(key_buffer(), live_.data(), top_, size());
    validate();
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
    for (std::size_t word = 0; word < live_.size(); ++word) {
        live_count += static_cast<std::uint64_t>(std::popcount(live_[word]));
    }
    if (top_ > capacity_ || live_count != size()) {
        throw CorruptTable("table: " + std::to_string(live_count) + " live indices, expected " +
                           std::to_string(size()) + " of at most " + std::to_string(capacity_));
    }
    std::vector<std::uint64_t> seen = live_;
    for (std::uint32_t const number : free_) {
        std::uint64_t const bit = std::uint64_t{1} << (number % 64);
        if (number >= top_ || (seen[number / 64] & bit) != 0) {
            throw CorruptTable("table: free index " + std::to_string(number) +
                               " is live, listed twice or too large");
        }
        seen[number / 64] |= bit;
    }
    for (std::uint64_t number = top_; number < live_.size() * 64; ++number) {
        if ((live_[number / 64] >> (number % 64) & 1) != 0) {
            throw CorruptTable("table: index " + std::to_string(number) +
                               " is live beyond the top");
        }
    }
    if (std::uint64_t const entries = index_.count_entries(); entries != size()) {
        throw CorruptTable("table: the index holds " + std::to_string(entries) +
                           " entries, expected " + std::to_string(size()));
    }
    runtime::Block found(top_ * sizeof(std::uint32_t));
    runtime::Block mask(top_);
    auto* const numbers = reinterpret_cast<std::uint32_t*>(found.data());
    find(key_buffer(), top_, {numbers, mask.data()});
    for (std::uint32_t number = 0; number < top_; ++number) {
        bool const is_live = (live_[number / 64] >> (number % 64) & 1) != 0;
        if (is_live && bool_keys_ && !has_true_bools(keys_.row(number), keys_.row_bytes)) {
            throw CorruptTable("table: the bool key at index " + std::to_string(number) +
                               " has a byte other than 0 and 1");
        }
        if (is_live && numbers[number] != number) {
            throw CorruptTable("table: the key at index " + std::to_string(number) +
                               " is found at " +
                               std::to_string(static_cast<std::int32_t>(numbers[number])));
        }
    }
}

ProbeLengths Table::probe_lengths(Bytes keys, std::size_t rows) const {
    return index_.probe_lengths(key_buffer(), {keys, top_, nullptr, nullptr, nullptr}, rows);
}

}  // namespace tensorhash::table
