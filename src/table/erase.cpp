// Erase: releases the slots of the entries, clears their live bits, then pushes the freed indices
// in row order. Each bucket is visited once.
#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <utility>

#include "runtime/parallel.hpp"
#include "runtime/scan.hpp"
#include "table/contested.hpp"
#include "table/mask_bits.hpp"
#include "table/table.hpp"
#include "tensorhash/threads.hpp"

namespace tensorhash::table {
namespace {

/// Rows that one thread erases before it pushes their buffer indices: few enough to stay in the
/// cache.
constexpr std::size_t kSlice = 4096;

/// The bit of an entry in its word.
std::uint64_t bit_of(std::uint32_t buf_index) noexcept {
    return std::rotl(std::uint64_t{1}, static_cast<int>(buf_index % 64));
}

/// Calls body(word, bit) for the entries of the rows in the mask.
template <class Body>
inline void for_found(step::BatchView const& batch, std::size_t begin, std::size_t end,
                      Body const& body) {
    std::uint32_t const* const buf_indices = batch.buf_indices;
    auto const one = [&](std::size_t row) {
        std::uint32_t const buf_index = buf_indices[row];
        body(buf_index / 64, bit_of(buf_index));
    };
    for_masked(
        batch.mask, begin, end,
        [&](std::size_t from, std::size_t to) {
            for (std::size_t row = from; row < to; ++row) {
                one(row);
            }
        },
        one);
}

/// Writes the buffer indices of the rows in the mask to `out`.
inline void write_found(step::BatchView const& batch, std::size_t begin, std::size_t end,
                        std::uint32_t* out) {
    for_masked(
        batch.mask, begin, end,
        [&](std::size_t from, std::size_t to) {
            out = std::copy(batch.buf_indices + from, batch.buf_indices + to, out);
        },
        [&](std::size_t row) { *out++ = batch.buf_indices[row]; });
}

/// Bits of the entries that each share of the rows erases. Their own memory: threads that clear
/// bits in one array would wait for each other's cache lines.
class ClearedBits {
public:
    ClearedBits(runtime::Block& memory, std::size_t words)
        : bits_(reinterpret_cast<std::uint64_t*>(memory.data())), words_(words) {}

    /// Pays off if the rows are not far fewer than the words.
    static std::size_t bytes(runtime::Chunks const& shares, std::size_t words) noexcept {
        bool const pays = shares.shared() && shares.count * words <= shares.rows;
        return pays ? shares.count * words * sizeof(std::uint64_t) : 0;
    }

    /// Returns true if the share has an entry twice.
    bool fill(step::BatchView const& batch, std::size_t share, std::size_t begin,
              std::size_t end) noexcept {
        std::uint64_t* const mine = bits_ + share * words_;
        std::memset(mine, 0, words_ * sizeof(std::uint64_t));
        std::uint64_t twice = 0;
        for_found(batch, begin, end, [&](std::size_t word, std::uint64_t bit) {
            twice |= mine[word] & bit;
            mine[word] |= bit;
        });
        return twice != 0;
    }

    /// Clears the bits of all shares in `live`, words [begin, end). Returns true if two shares have
    /// the same entry.
    bool clear(std::vector<std::uint64_t>& live, std::size_t shares, std::size_t begin,
               std::size_t end) const noexcept {
        std::uint64_t twice = 0;
        for (std::size_t word = begin; word < end; ++word) {
            std::uint64_t all = 0;
            for (std::size_t share = 0; share < shares; ++share) {
                std::uint64_t const bits = bits_[share * words_ + word];
                twice |= all & bits;
                all |= bits;
            }
            live[word] &= ~all;
        }
        return twice != 0;
    }

private:
    std::uint64_t* bits_;
    std::size_t words_;
};

/// Makes room for `added` more, and for some more after that: many small batches must not copy the
/// stack each time.
void make_room(FreeStack& stack, std::uint64_t added, std::uint64_t most) {
    std::uint64_t const needed = stack.size() + added;
    if (needed > stack.capacity()) {
        stack.reserve(std::max(needed, std::min<std::uint64_t>(stack.size() * 3 / 2, most)));
    }
}

}  // namespace

void Table::erase(Bytes keys, std::size_t rows, unsigned char* mask) {
    Erasing erasing = prepare_erase(rows);
    finish_erase(erasing, keys, rows, mask);
}

Erasing Table::prepare_erase(std::size_t rows) {
    Erasing erasing;
    erasing.chunks = runtime::cut(rows, runtime::kGrain);
    make_room(free_, std::min<std::uint64_t>(rows, size()), top_);
    if (!erasing.chunks.shared()) {
        return erasing;
    }
    erasing.positions = runtime::Block(rows * sizeof(std::uint32_t));
    erasing.freed = runtime::Block(rows * sizeof(std::uint32_t));
    std::size_t const share = rows / static_cast<std::size_t>(num_threads());
    erasing.shares = runtime::cut(rows, std::max(share, runtime::kGrain));
    if (std::size_t const bytes = ClearedBits::bytes(erasing.shares, live_.size()); bytes > 0) {
        erasing.cleared = runtime::Block(bytes);
    }
    erasing.contested = runtime::Block(ContestedRows::bytes(rows));
    erasing.taken.resize(erasing.chunks.count);
    return erasing;
}

void Table::finish_erase(Erasing& erasing, Bytes keys, std::size_t rows,
                         unsigned char* mask) noexcept {
    if (!erasing.chunks.shared()) {
        erase_in_order(keys, rows, mask);
        return;
    }
    step::BatchView const batch{keys, top_,
                                reinterpret_cast<std::uint32_t*>(erasing.positions.data()),
                                reinterpret_cast<std::uint32_t*>(erasing.freed.data()), mask};
    erase_at_once(erasing, batch);
    push_freed(batch, rows);
}

/// On one thread.
void Table::erase_in_order(Bytes keys, std::size_t rows, unsigned char* mask) noexcept {
    std::uint32_t positions[kSlice];
    std::uint32_t buf_indices[kSlice];
    std::size_t const held = free_.size();
    for (std::size_t begin = 0; begin < rows; begin += kSlice) {
        std::size_t const count = std::min(kSlice, rows - begin);
        step::BatchView const slice{keys + begin * keys_.row_bytes, top_, positions, buf_indices,
                                    mask + begin};
        std::size_t const place = free_.size();
        free_.resize(place + index_.erase(key_buffer(), slice, count));
        write_found(slice, 0, count, free_.data() + place);
    }
    // Only now: the buckets would push the live bits out of the cache.
    std::uint64_t* const live = live_.data();
    for (std::size_t i = held; i < free_.size(); ++i) {
        live[free_[i] / 64] &= ~bit_of(free_[i]);
    }
}

/// On several threads. Afterwards, mask and buf_indices are as if the rows had been erased in
/// order.
void Table::erase_at_once(Erasing& erasing, step::BatchView const& batch) noexcept {
    index_.erase(key_buffer(), batch, erasing.chunks, erasing.taken);
    ErasedBatch const erased{key_buffer(), batch, erasing.chunks, erasing.taken};
    ContestedRows contested(erasing.contested, erasing.chunks.rows);
    if (clear_live(erasing, batch)) {
        contested.choose_all(erased);
    } else if (!contested.choose_missed(index_, erased)) {
        return;
    }
    contested.decide(index_, erased);
}

void Table::push_freed(step::BatchView const& batch, std::size_t rows) noexcept {
    std::size_t const held = free_.size();
    runtime::select(
        runtime::cut(rows, runtime::kGrain),
        [&](std::size_t begin, std::size_t end) {
            return static_cast<std::size_t>(std::count(batch.mask + begin, batch.mask + end, 1));
        },
        [&](std::size_t count) { free_.resize(held + count); },
        [&](std::size_t begin, std::size_t end, std::size_t place) {
            write_found(batch, begin, end, free_.data() + held + place);
        });
}

/// Clears the live bits of the entries that rows took; true if two rows took the same entry.
bool Table::clear_live(Erasing& erasing, step::BatchView const& batch) noexcept {
    runtime::Chunks const& shares = erasing.shares;
    std::atomic<bool> twice{false};
    auto const note = [&](bool here) {
        if (here) {
            twice.store(true, std::memory_order_relaxed);
        }
    };
    if (erasing.cleared.bytes() > 0) {
        ClearedBits bits(erasing.cleared, live_.size());
        runtime::for_chunks(shares, [&](std::size_t share, std::size_t begin, std::size_t end) {
            note(bits.fill(batch, share, begin, end));
        });
        runtime::for_ranges(live_.size(), runtime::kGrain, [&](std::size_t begin, std::size_t end) {
            note(bits.clear(live_, shares.count, begin, end));
        });
    } else {
        runtime::for_chunks(shares, [&](std::size_t, std::size_t begin, std::size_t end) {
            bool here = false;
            for_found(batch, begin, end, [&](std::size_t word, std::uint64_t bit) {
                std::uint64_t const before =
                    std::atomic_ref(live_[word]).fetch_and(~bit, std::memory_order_relaxed);
                here |= (before & bit) == 0;
            });
            note(here);
        });
    }
    return twice.load(std::memory_order_relaxed);
}

}  // namespace tensorhash::table
