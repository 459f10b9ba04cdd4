// The flat open-addressing index from packed keys to rows, run over threads. No lock, no range check: its callers' work.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "cpu/flat_engine.hpp"
#include "runtime/memory.hpp"

namespace tensorhash::coords {

/// Key -> the smallest row that was inserted with it. Slots are shared with the views that were given out.
class FlatIndex {
public:
    /// So many slots, a power of two up to 2^31. Slots step by 1 or, with `double_hash`, by the
    /// key's odd stride. The default secret is the published hash.
    FlatIndex(std::uint64_t capacity, bool double_hash, kernel::HashSecret const& secret);
    /// The slots that n keys get by default: at most half full, at least 16; 2^31 are the most.
    static std::uint64_t capacity_for(std::uint64_t keys);

    std::uint64_t capacity() const noexcept { return std::uint64_t{view_.mask} + 1; }
    /// Distinct keys.
    std::uint64_t size() const noexcept { return size_; }
    bool double_hash() const noexcept { return view_.double_hash; }

    /// Inserts keys[i] with row first_row + i; of equal keys the smallest row stays, on any number of threads. No key may
    /// be kernel::kEmptyKey, no row of a former call be larger. Returns false, with the index as it was, if the new
    /// keys do not fit. `positions`, if given, learns the slot of every key.
    bool insert(std::uint64_t const* keys, std::size_t count, std::uint32_t first_row,
                std::uint32_t* positions = nullptr);
    /// Takes back every key whose row is `first_row` or larger: the last calls of insert.
    void drop_from(std::uint32_t first_row) noexcept;
    /// The same keys and rows in more slots.
    FlatIndex grown(std::uint64_t capacity) const;

    /// out[i] = the row of keys[i] or -1, as for kernel::kEmptyKey. On all threads; inside a task, on the spot.
    void find_keys(std::uint64_t const* keys, std::size_t count, std::int32_t* out,
                   cpu::FlatWindow window = cpu::FlatWindow::Line) const;
    /// The same for rows of 1 to 4 integers; rows out of range give -1.
    void find_rows(cpu::FlatRows const& rows, std::size_t count, std::int32_t* out,
                   cpu::FlatWindow window = cpu::FlatWindow::Line) const;

    /// The slots, for loops of one's own (step/flat.hpp). Valid until the next change.
    kernel::FlatView const& view() const noexcept { return view_; }
    std::shared_ptr<runtime::Block> const& block() const noexcept { return block_; }
    std::size_t bytes() const noexcept { return block_->bytes(); }

private:
    std::shared_ptr<runtime::Block> block_;
    kernel::FlatView view_;
    std::uint64_t size_ = 0;
};

/// Raises `most` to the larger of the numbers that tasks report.
inline void raise_to(std::atomic<std::uint32_t>& most, std::uint32_t value) noexcept {
    std::uint32_t seen = most.load(std::memory_order_relaxed);
    while (seen < value && !most.compare_exchange_weak(seen, value, std::memory_order_relaxed,
                                                       std::memory_order_relaxed)) {
    }
}

/// Packs rows of 1 to 4 integers on all threads: keys[i], kernel::kEmptyKey where out of range. Returns how many are.
std::size_t pack_rows(cpu::FlatRows const& rows, std::size_t count, std::uint64_t* keys);

}  // namespace tensorhash::coords
