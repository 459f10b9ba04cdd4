// Adding keys and growing: claims first, room second, numbers last; nothing of the table changes before room is there.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>

#include "runtime/parallel.hpp"
#include "table/arguments.hpp"
#include "table/rows.hpp"
#include "table/table.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::table {

namespace {

// What a larger index is first tried with, when nobody knows how many of a batch's rows are distinct.
constexpr std::uint64_t kFirstGuess = std::uint64_t{1} << 16;

// From this capacity on a table that doubles takes all the entries that its lines serve.
constexpr std::uint64_t kRoundedFrom = std::uint64_t{1} << 18;

[[noreturn]] void fail_too_many(std::uint64_t entries) {
    throw ValueError("keys: a table holds at most " + std::to_string(kMaxEntries) +
                     " entries, this batch would make at least " + std::to_string(entries));
}

void set_bits(std::vector<std::uint64_t>& bits, std::uint64_t begin, std::uint64_t end) noexcept {
    for (std::uint64_t i = begin; i < end;) {
        std::uint64_t const last = std::min(end, i / 64 * 64 + 64);
        std::uint64_t const ones =
            last - i == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << (last - i)) - 1;
        bits[i / 64] |= ones << (i % 64);
        i = last;
    }
}

}  // namespace

/// The column with room for the growth's capacity. Fresh memory is dear: what is there already is kept, unless somebody
/// has a view of it, which must stay where it is.
Column Table::enlarged(Column const& column, Growth& growth) const {
    runtime::Block& block = *column.block;
    if (column.block.use_count() == 1) {
        // Another thread may have let the last view go just now: giving up a share of one's own sees what it wrote.
        std::shared_ptr<runtime::Block>(column.block).reset();
        growth.extensions.reserve(growth.extensions.size() + 1);
        std::size_t const before = block.bytes();
        if (block.grow(growth.capacity * column.row_bytes)) {
            growth.extensions.emplace_back(&block, runtime::Shrink{before});
            return column;
        }
    }
    return copy_column(column, top_, growth.capacity);
}

Growth Table::grown_to(std::uint64_t capacity) const {
    Growth growth;
    growth.capacity = capacity;
    growth.keys = enlarged(keys_, growth);
    for (Column const& column : values_) {
        growth.values.push_back(enlarged(column, growth));
    }
    growth.live = live_;
    growth.live.resize((capacity + 63) / 64, 0);
    return growth;
}

/// The index has a power of two of lines; a large table is rounded up to what they serve, or the next doubling might
/// end just above and double the lines for little. The largest index serves more than
/// that says.
std::uint64_t grown_capacity(KeyLayout layout, std::uint64_t capacity, std::uint64_t needed) {
    if (needed <= capacity) {
        return capacity;
    }
    std::uint64_t grown = std::max(2 * capacity, needed);
    if (needed <= 2 * capacity && grown >= kRoundedFrom) {
        grown = std::max(grown, Index::capacity_of(layout, Index::lines_for(layout, grown)));
    }
    return std::min(grown, kMaxEntries);
}

Growth Table::make_room(Index const& target, std::uint64_t fresh) const {
    std::uint64_t const needed = top_ + fresh;
    if (needed > kMaxEntries) {
        fail_too_many(needed);
    }
    Growth growth;
    growth.capacity = capacity_;
    if (needed > capacity_) {
        growth = grown_to(grown_capacity(layout_, capacity_, needed));
    }
    std::uint64_t const lines = Index::lines_for(layout_, growth.capacity);
    if (target.lines() != lines) {
        growth.index.emplace(layout_, lines, seed(), runtime::Fill::Committed);
    }
    return growth;
}

/// Rows that are nobody's read as zeros after growth, also where the old memory goes on.
void Table::clear_unused(Column& old, Column const& grown) const noexcept {
    if (old.block == grown.block) {
        runtime::zero_bytes(old.row(top_), (capacity_ - top_) * old.row_bytes);
    }
}

void Table::adopt(Growth&& growth) noexcept {
    for (runtime::Extension& extension : growth.extensions) {
        static_cast<void>(extension.release());  // the table keeps the new room
    }
    if (growth.keys) {
        clear_unused(keys_, *growth.keys);
        for (std::size_t i = 0; i < values_.size(); ++i) {
            clear_unused(values_[i], growth.values[i]);
        }
        capacity_ = growth.capacity;
        keys_ = std::move(*growth.keys);
        values_ = std::move(growth.values);
        live_ = std::move(growth.live);
    }
}

cpu::ClaimCount Table::claim(kernel::BatchView const& batch, std::size_t rows,
                             std::optional<Index>& replacement) {
    if (rows <= index_.room()) {
        return index_.claim(key_buffer(), batch, 0, rows);
    }
    // More rows than room. Most of them may be there already: look before growing.
    std::uint64_t missing = rows;
    if (size() > 0) {
        index_.find(key_buffer(), batch, rows);
        missing = static_cast<std::uint64_t>(
            std::count(batch.numbers, batch.numbers + rows, kernel::kNoNumber));
        if (missing <= index_.room()) {
            return index_.claim(key_buffer(), batch, 0, rows);
        }
    }
    return claim_in_larger(batch, rows, missing, replacement);
}

/// Claims in an index beside the table's own, which stays as it is. Nobody knows yet how many of the missing rows are
/// distinct, so a modest index is tried first and its count tells how large the next must be.
cpu::ClaimCount Table::claim_in_larger(kernel::BatchView const& batch, std::size_t rows,
                                       std::uint64_t missing,
                                       std::optional<Index>& replacement) const {
    std::uint64_t const enough = size() + missing;
    std::uint64_t guess = std::max(2 * capacity_, kFirstGuess);
    for (;;) {
        // If the guess is right, this is the index that make_room() will ask for.
        std::uint64_t const wanted = std::min(guess, enough);
        std::uint64_t const sized_for =
            std::max(grown_capacity(layout_, capacity_, wanted), wanted);
        bool const all_fit = sized_for >= enough && enough <= kMaxEntries;
        bool const is_largest = sized_for >= kMaxEntries;
        replacement.reset();
        replacement.emplace(layout_, Index::lines_for(layout_, sized_for), seed(),
                            runtime::Fill::Committed);
        replacement->place(key_buffer(), live_.data(), top_, size(), index_);
        cpu::ClaimCount count;
        std::size_t done = 0;
        while (done < rows && (all_fit || is_largest || replacement->room() > sized_for / 8)) {
            std::size_t const left = rows - done;
            std::size_t const step =
                all_fit ? left : std::min<std::size_t>(left, replacement->room());
            auto const here = replacement->claim(key_buffer(), batch, done, done + step);
            count.claimed += here.claimed;
            done += step;
            if (size() + count.claimed > kMaxEntries) {
                fail_too_many(size() + count.claimed);  // the largest index has room for more
            }
        }
        if (done == rows) {
            return count;
        }
        // A tenth more than the rows so far promise, and never less than four times the last try.
        auto const promised = static_cast<double>(count.claimed) / static_cast<double>(done) * 1.1 *
                              static_cast<double>(rows);
        guess = std::max(4 * sized_for, size() + static_cast<std::uint64_t>(promised));
    }
}

/// Copies the caller's keys to where they cannot change. Room is made for the keys that were
/// counted, a claim reads a key more than once, and the buffer must hold what was claimed. If keys
/// changed between, a claim might find no slot, or the table might hold a key that no lookup finds.
/// The copy goes behind the table's own keys if there is room: if all keys are new, it is where
/// they belong.
Bytes Table::keep_keys(Adding& adding, Bytes keys) {
    std::size_t const bytes = adding.rows * keys_.row_bytes;
    adding.in_place = adding.rows <= capacity_ - top_;
    if (!adding.in_place) {
        adding.keys = runtime::Block(bytes);
    }
    unsigned char* const to = adding.in_place ? keys_.row(top_) : adding.keys.data();
    copy_keys(to, keys, adding.rows);
    return to;
}

void Table::copy_keys(unsigned char* to, Bytes keys, std::size_t rows) const noexcept {
    std::size_t const bytes = rows * keys_.row_bytes;
    runtime::copy_bytes(to, keys, bytes);
    if (bool_keys_) {
        make_true_bools(to, bytes);  // they were when they were checked
    }
}

/// The rows behind the table's own keys read as zeros again.
void Table::forget_keys(Adding const& adding) noexcept {
    if (adding.in_place) {
        runtime::zero_bytes(keys_.row(top_), adding.rows * keys_.row_bytes);
    }
}

Adding Table::prepare_add(Bytes keys, std::size_t rows, Answers out, KeySource source) {
    Adding adding;
    adding.positions = runtime::Block(rows * sizeof(std::uint32_t));
    adding.rows = rows;
    Bytes const kept = source == KeySource::Private ? keys : keep_keys(adding, keys);
    adding.batch = {kept, top_, reinterpret_cast<std::uint32_t*>(adding.positions.data()),
                    out.numbers, out.mask};
    cpu::ClaimCount count;
    try {
        count = claim(adding.batch, rows, adding.replacement);
    } catch (...) {
        forget_keys(adding);
        throw;
    }
    adding.counts = {top_, count.claimed, std::min<std::uint64_t>(count.claimed, free_.size())};
    try {
        adding.growth = make_room(adding.replacement ? *adding.replacement : index_,
                                  count.claimed - adding.counts.reused);
    } catch (...) {
        cancel(adding);
        throw;
    }
    return adding;
}

void Table::cancel(Adding& adding) noexcept {
    if (!adding.replacement) {
        index_.release_claims(key_buffer(), adding.batch, adding.rows);
    }
    forget_keys(adding);
    adding.growth = {};  // buffers get their old size back now, while the caller has the lock
}

Adding::Counts Table::finish_add(Adding& adding) noexcept {
    Adding::Counts const added = adding.counts;
    std::uint64_t const fresh = added.claimed - added.reused;
    bool const as_numbered = added.claimed == adding.rows && added.reused == 0;
    if (!as_numbered && added.claimed > 0) {
        Index& target = adding.replacement ? *adding.replacement : index_;
        target.publish(key_buffer(), adding.batch, adding.rows, free_.data() + free_.size(),
                       added.reused);
    }
    std::optional<Index> rebuilt = std::move(adding.growth.index);
    adopt(std::move(adding.growth));
    write_keys(adding);
    for (std::uint64_t i = 0; i < added.reused; ++i) {
        std::uint32_t const number = free_[free_.size() - 1 - i];
        live_[number / 64] |= std::uint64_t{1} << (number % 64);
    }
    free_.resize(free_.size() - added.reused);
    set_bits(live_, top_, top_ + fresh);
    top_ += static_cast<std::uint32_t>(fresh);
    if (rebuilt) {
        Index const& target = adding.replacement ? *adding.replacement : index_;
        rebuilt->place(key_buffer(), live_.data(), top_, size(), target);
        index_ = std::move(*rebuilt);
    } else if (adding.replacement) {
        index_ = std::move(*adding.replacement);
    }
    return added;
}

void Table::write_keys(Adding const& adding) noexcept {
    Adding::Counts const& added = adding.counts;
    if (!adding.in_place) {
        write_new(keys_, adding.batch.keys, adding.rows, {adding.batch.numbers, adding.batch.mask},
                  added);
    } else if (added.claimed < adding.rows || added.reused > 0) {
        close_gaps(adding);
    }
}

/// The key of row i lies at index top_ + i. New keys move to their indices, which are not above
/// that: freed ones, then those from top_ on, in row order. Each chunk closes its own gaps; then
/// the chunks move together.
void Table::close_gaps(Adding const& adding) noexcept {
    kernel::BatchView const& batch = adding.batch;
    runtime::Chunks const chunks = runtime::cut(adding.rows, runtime::kGrain);
    std::array<std::size_t, runtime::kMaxChunks> fresh;
    with_width(keys_.row_bytes, [&](auto width) {
        unsigned char* const keys = keys_.block->data();
        runtime::for_chunks(chunks, [&](std::size_t chunk, std::size_t begin, std::size_t end) {
            std::size_t next = top_ + begin;
            for (std::size_t row = begin; row < end; ++row) {
                if (batch.mask[row] != 0) {
                    std::size_t const to = batch.numbers[row] < top_ ? batch.numbers[row] : next++;
                    std::memmove(keys + to * width.bytes(), keys + (top_ + row) * width.bytes(),
                                 width.bytes());
                }
            }
            fresh[chunk] = next - (top_ + begin);
        });
    });
    std::size_t end = 0;
    for (std::size_t chunk = 0; chunk < chunks.count; ++chunk) {
        if (end != chunks.begin(chunk)) {
            std::memmove(keys_.row(top_ + end), keys_.row(top_ + chunks.begin(chunk)),
                         fresh[chunk] * keys_.row_bytes);
        }
        end += fresh[chunk];
    }
    runtime::zero_bytes(keys_.row(top_ + end), (adding.rows - end) * keys_.row_bytes);
}

void Table::write_new(Column& column, Bytes from, std::size_t rows, Answers const& where,
                      Adding::Counts const& added, std::uint32_t const* order) {
    if (added.claimed == rows && added.reused == 0 && order == nullptr) {
        runtime::copy_bytes(column.row(added.base), from, rows * column.row_bytes);
    } else if (added.claimed > 0) {
        scatter_rows(column.block->data(), from, column.row_bytes, where.numbers, where.mask, rows,
                     order);
    }
}

Growth Table::prepare_reserve(std::uint64_t capacity) {
    if (capacity > kMaxEntries) {
        throw ValueError("capacity: a table holds at most " + std::to_string(kMaxEntries) +
                         " entries, got " + std::to_string(capacity));
    }
    if (capacity <= capacity_) {
        return {};
    }
    Growth growth = grown_to(capacity);
    std::uint64_t const lines = Index::lines_for(layout_, capacity);
    if (lines != index_.lines()) {
        growth.extensions.reserve(growth.extensions.size() + 1);
        if (runtime::Extension extension = index_.make_room(lines)) {
            growth.extensions.push_back(std::move(extension));
            growth.lines = lines;
        } else {
            growth.index.emplace(layout_, lines, seed(), runtime::Fill::Committed);
        }
    }
    return growth;
}

void Table::finish_reserve(Growth&& growth) noexcept {
    std::optional<Index> larger = std::move(growth.index);
    std::uint64_t const lines = growth.lines;
    adopt(std::move(growth));
    if (lines != 0) {
        index_.clear(lines);
        index_.place(key_buffer(), live_.data(), top_, size());
    } else if (larger) {
        larger->place(key_buffer(), live_.data(), top_, size(), index_);
        index_ = std::move(*larger);
    }
}

void Table::reserve(std::uint64_t capacity) { finish_reserve(prepare_reserve(capacity)); }

}  // namespace tensorhash::table
