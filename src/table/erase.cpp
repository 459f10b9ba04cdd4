// Erase: locates the entries without writing, releases their slots, then pushes the freed indices
// in row order.
#include <algorithm>
#include <atomic>
#include <utility>

#include "runtime/parallel.hpp"
#include "runtime/scan.hpp"
#include "table/table.hpp"

namespace tensorhash::table {

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
    auto* const buf_indices = reinterpret_cast<std::uint32_t*>(erasing.freed.data());
    step::BatchView const batch{
        keys, top_, reinterpret_cast<std::uint32_t*>(erasing.positions.data()), buf_indices, mask};
    index_.locate(key_buffer(), batch, rows);
    runtime::Chunks const chunks = runtime::cut(rows, runtime::kGrain);
    // Rows that erase the same entry are rare; clearing the live bits tells whether there are any.
    bool const has_repeats = clear_live(batch, chunks);
    std::uint64_t const erased = index_.release(key_buffer(), batch, rows, has_repeats);
    if (erased == 0) {
        return;
    }
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

/// Clears the live bits of the located entries; true if an entry was located twice.
bool Table::clear_live(step::BatchView const& batch, runtime::Chunks const& chunks) noexcept {
    std::atomic<bool> twice{false};
    bool const shared = chunks.shared();
    runtime::for_chunks(chunks, [&](std::size_t, std::size_t begin, std::size_t end) {
        bool here = false;
        for (std::size_t row = begin; row < end; ++row) {
            if (batch.mask[row] == 0) {
                continue;
            }
            std::uint64_t const bit = std::uint64_t{1} << (batch.buf_indices[row] % 64);
            std::uint64_t& word = live_[batch.buf_indices[row] / 64];
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

}  // namespace tensorhash::table
