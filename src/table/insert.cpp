// Insert: claims first, room second, buffer indices last. If there is no room, the claims are
// released and no entry has changed.
#include <algorithm>
#include <array>
#include <cstring>

#include "runtime/parallel.hpp"
#include "runtime/wanted_rows.hpp"
#include "table/limits.hpp"
#include "table/rows.hpp"
#include "table/table.hpp"
#include "tensor/bools.hpp"

namespace tensorhash::table {
namespace {

// Entries of the first larger index to try while the number of distinct rows is unknown.
constexpr std::uint64_t kFirstGuess = std::uint64_t{1} << 16;

// This many rows show whether a batch has many new keys.
constexpr std::size_t kSample = 512;

/// New keys to expect in `rows` rows if `done` rows had `claimed`, and a tenth more.
std::uint64_t expected_new(std::uint64_t claimed, std::size_t done, std::size_t rows) {
    return done == 0
               ? 0
               : static_cast<std::uint64_t>(static_cast<double>(claimed) * 1.1 /
                                            static_cast<double>(done) * static_cast<double>(rows));
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

void Table::insert(Bytes keys, std::size_t rows, backend::ValueRows const& values, Answers out,
                   KeySource source) {
    finish_insert(prepare_insert(keys, rows, out, source), values);
}

void Table::activate(Bytes keys, std::size_t rows, Answers out, KeySource source) {
    finish_activate(prepare_insert(keys, rows, out, source));
}

Insertion Table::prepare_insert(Bytes keys, std::size_t rows, Answers out, KeySource source) {
    Insertion insertion;
    insertion.positions = runtime::Block(rows * sizeof(std::uint32_t));
    insertion.rows = rows;
    insertion.buckets_before = index_.buckets();
    Bytes const kept = source == KeySource::Private ? keys : keep_keys(insertion, keys);
    insertion.batch = {kept, top_, reinterpret_cast<std::uint32_t*>(insertion.positions.data()),
                       out.indices, out.mask};
    cpu::ClaimCount count;
    try {
        count = claim(insertion.batch, rows);
    } catch (...) {
        undo_claims(insertion.batch, 0, insertion.buckets_before);
        forget_keys(insertion);
        throw;
    }
    insertion.counts = {top_, count.claimed, std::min<std::uint64_t>(count.claimed, free_.size())};
    try {
        insertion.growth = prepare_growth(insertion);
    } catch (...) {
        cancel(insertion);
        throw;
    }
    return insertion;
}

/// Copies the caller's keys, because another thread may change them during the call. Claims read a
/// key more than once and the buffer must hold what was claimed. If a key changed in between, a
/// claim might find no slot, or the table might hold a key that no lookup finds. The copy goes
/// behind the table's own keys if there is room: if all keys are new, they are in place already.
Bytes Table::keep_keys(Insertion& insertion, Bytes keys) {
    std::size_t const bytes = insertion.rows * keys_.row_bytes;
    insertion.in_place = insertion.rows <= capacity_ - top_;
    if (!insertion.in_place) {
        insertion.keys = runtime::Block(bytes);
    }
    unsigned char* const to = insertion.in_place ? keys_.row(top_) : insertion.keys.data();
    copy_keys(to, keys, insertion.rows);
    return to;
}

void Table::copy_keys(unsigned char* to, Bytes keys, std::size_t rows) const noexcept {
    std::size_t const bytes = rows * keys_.row_bytes;
    runtime::copy_bytes(to, keys, bytes);
    if (key_.dtype == Dtype::Bool) {
        canonicalize_bools(to, bytes);  // they may have changed since they were checked
    }
}

/// Zeroes the copy behind the table's own keys.
void Table::forget_keys(Insertion const& insertion) noexcept {
    if (insertion.in_place) {
        runtime::zero_bytes(keys_.row(top_), insertion.rows * keys_.row_bytes);
    }
}

cpu::ClaimCount Table::claim(step::BatchView const& batch, std::size_t rows) {
    // More rows than room? Most keys may already be present, so the rows are claimed in parts that
    // fit for certain, for as long as all may fit.
    std::uint64_t claimed = 0;
    std::size_t done = 0;
    for (std::size_t most = kSample; rows - done > index_.room(); most = rows) {
        std::size_t const left = rows - done;
        std::uint64_t const room = index_.room();
        std::uint64_t const expected = expected_new(claimed, done, left);
        bool const is_tight = room < kSample || room < left / 16;
        if (is_tight || expected > room) {
            index_.release_claims(key_buffer(), batch, done);
            return is_tight ? look_up_and_claim(batch, rows)
                            : claim_and_grow(batch, rows, rows, size() + claimed + expected);
        }
        std::size_t const part = std::min<std::uint64_t>({left, room, most});
        claimed += index_.claim(key_buffer(), batch, done, done + part).claimed;
        done += part;
    }
    cpu::ClaimCount count = index_.claim(key_buffer(), batch, done, rows);
    count.claimed += claimed;
    return count;
}

/// Counts the new rows before any is claimed.
cpu::ClaimCount Table::look_up_and_claim(step::BatchView const& batch, std::size_t rows) {
    if (size() == 0) {
        return claim_and_grow(batch, rows, rows, std::max(2 * capacity_, kFirstGuess));
    }
    index_.find(key_buffer(), batch, rows);
    auto const missing = static_cast<std::uint64_t>(
        std::count(batch.buf_indices, batch.buf_indices + rows, step::kNotFound));
    if (missing <= index_.room()) {
        return index_.claim(key_buffer(), batch, 0, rows);
    }
    return claim_and_grow(batch, rows, missing, std::max(2 * capacity_, kFirstGuess));
}

/// Claims in a larger index. At most `most_new` rows are new, but how many of them are distinct is
/// not known yet: an index for `guess` entries is tried first, and its count tells how large the
/// next one must be. Only an index without claims grows, because the rows know where their slots
/// are.
cpu::ClaimCount Table::claim_and_grow(step::BatchView const& batch, std::size_t rows,
                                      std::uint64_t most_new, std::uint64_t guess) {
    std::uint64_t const buckets_before = index_.buckets();
    std::uint64_t const enough = size() + most_new;
    for (;;) {
        std::uint64_t const sized_for = std::min(guess, enough);
        bool const all_fit = sized_for >= enough && enough <= kMaxEntries;
        bool const is_largest = sized_for >= kMaxEntries;
        fit_index(std::min(sized_for, kMaxEntries));
        cpu::ClaimCount count;
        std::size_t done = 0;
        while (done < rows && (all_fit || is_largest || index_.room() > sized_for / 8)) {
            std::size_t const left = rows - done;
            std::size_t const step = all_fit ? left : std::min<std::size_t>(left, index_.room());
            auto const here = index_.claim(key_buffer(), batch, done, done + step);
            count.claimed += here.claimed;
            done += step;
            if (size() + count.claimed > kMaxEntries) {
                undo_claims(batch, done, buckets_before);
                fail_too_many(size() + count.claimed);  // the largest index has room for more
            }
        }
        if (done == rows) {
            return count;
        }
        index_.release_claims(key_buffer(), batch, done);
        guess = std::max(4 * sized_for, size() + expected_new(count.claimed, done, rows));
    }
}

/// The index gets back the size that it had before the claims.
void Table::undo_claims(step::BatchView const& batch, std::size_t rows,
                        std::uint64_t buckets_before) noexcept {
    if (index_.buckets() == buckets_before) {
        index_.release_claims(key_buffer(), batch, rows);
    } else {
        index_.resize(key_buffer(), live_.data(), top_, size(), buckets_before);
    }
}

void Table::cancel(Insertion& insertion) noexcept {
    undo_claims(insertion.batch, insertion.rows, insertion.buckets_before);
    forget_keys(insertion);
    insertion.growth = {};  // shrinks the buffers now, while the caller holds the lock
}

void Table::finish_insert(Insertion&& insertion, backend::ValueRows const& values) noexcept {
    Insertion::Counts const added = finish_keys(insertion);
    Answers const out{insertion.batch.buf_indices, insertion.batch.mask};
    for (std::size_t i = 0; i < values_.size(); ++i) {
        write_new(values_[i], values.columns[i], insertion.rows, out, added, values.order);
    }
}

void Table::finish_activate(Insertion&& insertion) noexcept {
    if (finish_keys(insertion).claimed == 0) {
        return;
    }
    // Fresh rows too: a user may have written there through a view.
    step::BatchView const& batch = insertion.batch;
    for (Column& column : values_) {
        runtime::for_ranges(
            insertion.rows, runtime::kGrain, [&](std::size_t begin, std::size_t end) {
                for (std::size_t row = begin; row < end; ++row) {
                    if (batch.mask[row] != 0) {
                        std::memset(column.row(batch.buf_indices[row]), 0, column.row_bytes);
                    }
                }
            });
    }
}

Insertion::Counts Table::finish_keys(Insertion& insertion) noexcept {
    Insertion::Counts const added = insertion.counts;
    std::uint64_t const fresh = added.claimed - added.reused;
    // If every row adds a key and none reuses an index, the claims' base + row is final.
    bool const is_final = added.claimed == insertion.rows && added.reused == 0;
    if (!is_final && added.claimed > 0) {
        index_.publish(key_buffer(), insertion.batch, insertion.rows, free_.data() + free_.size(),
                       added.reused);
    }
    std::optional<BucketIndex> smaller = std::move(insertion.growth.index);
    adopt(std::move(insertion.growth));
    write_keys(insertion);
    for (std::uint64_t i = 0; i < added.reused; ++i) {
        std::uint32_t const buf_index = free_[free_.size() - 1 - i];
        live_[buf_index / 64] |= std::uint64_t{1} << (buf_index % 64);
    }
    free_.resize(free_.size() - added.reused);
    set_bits(live_, top_, top_ + fresh);
    top_ += static_cast<std::uint32_t>(fresh);
    finish_index(std::move(smaller), 0);
    return added;
}

void Table::write_keys(Insertion const& insertion) noexcept {
    Insertion::Counts const& added = insertion.counts;
    if (!insertion.in_place) {
        write_new(keys_, insertion.batch.keys, insertion.rows,
                  {insertion.batch.buf_indices, insertion.batch.mask}, added);
    } else if (added.claimed < insertion.rows || added.reused > 0) {
        close_gaps(insertion);
    }
}

/// The key of row i lies at index top_ + i. New keys move down to their own indices: freed ones,
/// then those from top_ on, in row order. Each chunk closes its own gaps; then the chunks are moved
/// together.
void Table::close_gaps(Insertion const& insertion) noexcept {
    step::BatchView const& batch = insertion.batch;
    runtime::Chunks const chunks = runtime::cut(insertion.rows, runtime::kGrain);
    std::array<std::size_t, runtime::kMaxChunks> fresh;
    with_width(keys_.row_bytes, [&](auto width) {
        unsigned char* const keys = keys_.block->data();
        runtime::for_chunks(chunks, [&](std::size_t chunk, std::size_t begin, std::size_t end) {
            std::size_t next = top_ + begin;
            runtime::for_wanted_rows(
                begin, end, [&](std::size_t row) { return batch.mask[row] != 0; },
                [&](std::size_t row) {
                    std::size_t const to =
                        batch.buf_indices[row] < top_ ? batch.buf_indices[row] : next++;
                    std::memmove(keys + to * width.bytes(), keys + (top_ + row) * width.bytes(),
                                 width.bytes());
                });
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
    runtime::zero_bytes(keys_.row(top_ + end), (insertion.rows - end) * keys_.row_bytes);
}

void Table::write_new(Column& column, Bytes from, std::size_t rows, Answers const& where,
                      Insertion::Counts const& added, std::uint32_t const* order) {
    bool const is_final = added.claimed == rows && added.reused == 0;
    if (is_final && order == nullptr) {
        runtime::copy_bytes(column.row(added.base), from, rows * column.row_bytes);
    } else if (is_final) {
        gather_rows(column.row(added.base), from, column.row_bytes, order, rows);
    } else if (added.claimed > 0) {
        scatter_rows(column.block->data(), from, column.row_bytes, where.indices, where.mask, rows,
                     order);
    }
}

}  // namespace tensorhash::table
