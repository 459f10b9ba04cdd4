// The flat open-addressing index from packed keys to rows, run on all threads. Callers lock and
// check ranges.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "cpu/flat_engine.hpp"
#include "runtime/memory.hpp"

namespace tensorhash::index {

/// Maps a key to the smallest row that was inserted with it. Views given out share the slots.
class FlatIndex {
public:
    /// `capacity` slots, a power of two up to 2^31. Probes go slot by slot or, with `double_hash`,
    /// by the key's odd stride. The default secret is the published hash.
    FlatIndex(std::uint64_t capacity, bool double_hash, step::HashSecret const& secret);

    std::uint64_t capacity() const noexcept { return std::uint64_t{view_.mask} + 1; }
    /// Distinct keys.
    std::uint64_t size() const noexcept { return size_; }
    bool double_hash() const noexcept { return view_.double_hash; }

    /// Inserts keys[i] with row first_row + i. Of equal keys the smallest row stays, on any number
    /// of threads. No key may be step::kEmptyKey, and no earlier call may have used a larger row.
    /// Returns false and leaves the index unchanged if the new keys do not fit. `positions`, if
    /// given, receives the slot of every key.
    bool insert(std::uint64_t const* keys, std::size_t count, std::uint32_t first_row,
                std::uint32_t* positions = nullptr);
    /// Removes all keys with row `first_row` or larger: undoes the last calls of insert.
    void drop_from(std::uint32_t first_row) noexcept;
    /// The same keys and rows in more slots.
    FlatIndex grown(std::uint64_t capacity) const;

    /// out[i] = the row of keys[i], or -1; step::kEmptyKey gives -1. Runs on all threads; inside a
    /// task, on the calling thread.
    void find_keys(std::uint64_t const* keys, std::size_t count, std::int32_t* out,
                   cpu::FlatWindow window = cpu::FlatWindow::Bucket) const;
    /// The same for rows of 1 to 4 integers; rows out of range give -1.
    void find_rows(cpu::FlatRows const& rows, std::size_t count, std::int32_t* out,
                   cpu::FlatWindow window = cpu::FlatWindow::Bucket) const;

    /// The slots, for custom loops (step/flat.hpp). Valid until the next change.
    step::FlatView const& view() const noexcept { return view_; }
    std::shared_ptr<runtime::Block> const& block() const noexcept { return block_; }
    std::size_t bytes() const noexcept { return block_->bytes(); }

private:
    std::shared_ptr<runtime::Block> block_;
    step::FlatView view_;
    std::uint64_t size_ = 0;
};

/// Raises `most` to at least `value`.
inline void raise_to(std::atomic<std::uint32_t>& most, std::uint32_t value) noexcept {
    std::uint32_t seen = most.load(std::memory_order_relaxed);
    while (seen < value && !most.compare_exchange_weak(seen, value, std::memory_order_relaxed,
                                                       std::memory_order_relaxed)) {
    }
}

/// Packs rows of 1 to 4 integers into keys[i] on all threads; step::kEmptyKey if out of range.
/// Returns how many are.
std::size_t pack_rows(cpu::FlatRows const& rows, std::size_t count, std::uint64_t* keys);

}  // namespace tensorhash::index
