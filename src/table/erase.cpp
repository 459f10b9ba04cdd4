// Erase: releases the slots of the entries, then pushes the freed indices in row order.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "runtime/parallel.hpp"
#include "runtime/scan.hpp"
#include "table/table.hpp"
#include "tensorhash/threads.hpp"

namespace tensorhash::table {
namespace {

/// Calls body(word, bit) for the entries of the rows in the mask.
template <class Body>
void for_found(step::BatchView const& batch, std::size_t begin, std::size_t end, Body const& body) {
    for (std::size_t row = begin; row < end; ++row) {
        if (batch.mask[row] != 0) {
            std::uint32_t const buf_index = batch.buf_indices[row];
            body(buf_index / 64, std::uint64_t{1} << (buf_index % 64));
        }
    }
}

/// Bits of the entries that each chunk of rows erases. Their own memory: threads that clear bits in
/// one array would wait for each other's cache lines.
class ClearedBits {
public:
    ClearedBits(runtime::Block& memory, std::size_t words)
        : bits_(reinterpret_cast<std::uint64_t*>(memory.data())), words_(words) {}

    /// Pays off if the rows are not far fewer than the words.
    static std::size_t bytes(runtime::Chunks const& chunks, std::size_t words) noexcept {
        bool const pays = chunks.shared() && chunks.count * words <= chunks.rows;
        return pays ? chunks.count * words * sizeof(std::uint64_t) : 0;
    }

    /// Returns true if the chunk has an entry twice.
    bool fill(step::BatchView const& batch, std::size_t chunk, std::size_t begin,
              std::size_t end) noexcept {
        std::uint64_t* const mine = bits_ + chunk * words_;
        std::memset(mine, 0, words_ * sizeof(std::uint64_t));
        std::uint64_t twice = 0;
        for_found(batch, begin, end, [&](std::size_t word, std::uint64_t bit) {
            twice |= mine[word] & bit;
            mine[word] |= bit;
        });
        return twice != 0;
    }

    /// Clears the bits of all chunks in `live`, words [begin, end). Returns true if two chunks have
    /// the same entry.
    bool clear(std::vector<std::uint64_t>& live, std::size_t chunks, std::size_t begin,
               std::size_t end) const noexcept {
        std::uint64_t twice = 0;
        for (std::size_t word = begin; word < end; ++word) {
            std::uint64_t all = 0;
            for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
                std::uint64_t const bits = bits_[chunk * words_ + word];
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

}  // namespace

void Table::erase(Bytes keys, std::size_t rows, unsigned char* mask) {
    Erasing erasing = prepare_erase(rows);
    finish_erase(erasing, keys, rows, mask);
}

Erasing Table::prepare_erase(std::size_t rows) {
    std::size_t const share = rows / static_cast<std::size_t>(num_threads());
    Erasing erasing;
    erasing.positions = runtime::Block(rows * sizeof(std::uint32_t));
    erasing.freed = runtime::Block(rows * sizeof(std::uint32_t));
    erasing.chunks = runtime::cut(rows, std::max(share, runtime::kGrain));
    if (std::size_t const bytes = ClearedBits::bytes(erasing.chunks, live_.size()); bytes > 0) {
        erasing.cleared = runtime::Block(bytes);
    }
    free_.reserve(free_.size() + std::min<std::uint64_t>(rows, size()));
    return erasing;
}

void Table::finish_erase(Erasing& erasing, Bytes keys, std::size_t rows,
                         unsigned char* mask) noexcept {
    auto* const buf_indices = reinterpret_cast<std::uint32_t*>(erasing.freed.data());
    step::BatchView const batch{
        keys, top_, reinterpret_cast<std::uint32_t*>(erasing.positions.data()), buf_indices, mask};
    if (erase_slots(erasing, batch) == 0) {
        return;
    }
    runtime::Chunks const chunks = runtime::cut(rows, runtime::kGrain);
    std::size_t const held = free_.size();
    runtime::select(
        chunks,
        [&](std::size_t begin, std::size_t end) {
            return static_cast<std::size_t>(std::count(mask + begin, mask + end, 1));
        },
        [&](std::size_t count) { free_.resize(held + count); },
        [&](std::size_t begin, std::size_t end, std::size_t place) {
            std::uint32_t* next = free_.data() + held + place;
            unsigned char const* const erased_here = mask;
            std::uint32_t const* const from = buf_indices;
            for (std::size_t row = begin; row < end; ++row) {
                if (erased_here[row] != 0) {
                    *next++ = from[row];
                }
            }
        });
}

/// Releases the slots and clears the live bits; the mask says which rows erased an entry. Returns
/// how many. One thread does it in one visit of each bucket. Several first locate all entries,
/// because only then is it known which row comes first.
std::uint64_t Table::erase_slots(Erasing& erasing, step::BatchView const& batch) noexcept {
    runtime::Chunks const& chunks = erasing.chunks;
    if (!chunks.shared()) {
        std::uint64_t const erased = index_.erase(key_buffer(), batch, chunks.rows);
        for_found(batch, 0, chunks.rows,
                  [&](std::size_t word, std::uint64_t bit) { live_[word] &= ~bit; });
        return erased;
    }
    index_.locate(key_buffer(), batch, chunks.rows);
    // Rows that erase the same entry are rare; clearing the live bits tells whether there are any.
    bool const has_repeats = clear_live(erasing, batch);
    return index_.release(key_buffer(), batch, chunks.rows, has_repeats);
}

/// Clears the live bits of the located entries; true if an entry was located twice.
bool Table::clear_live(Erasing& erasing, step::BatchView const& batch) noexcept {
    runtime::Chunks const& chunks = erasing.chunks;
    std::atomic<bool> twice{false};
    auto const note = [&](bool here) {
        if (here) {
            twice.store(true, std::memory_order_relaxed);
        }
    };
    if (erasing.cleared.bytes() > 0) {
        ClearedBits bits(erasing.cleared, live_.size());
        runtime::for_chunks(chunks, [&](std::size_t chunk, std::size_t begin, std::size_t end) {
            note(bits.fill(batch, chunk, begin, end));
        });
        runtime::for_ranges(live_.size(), runtime::kGrain, [&](std::size_t begin, std::size_t end) {
            note(bits.clear(live_, chunks.count, begin, end));
        });
    } else {
        runtime::for_chunks(chunks, [&](std::size_t, std::size_t begin, std::size_t end) {
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
