// The memory of an index over rows of coordinates: packed slots, wide slots, and the launches that
// fill them.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "backend/capacities.hpp"
#include "device/array.hpp"
#include "device/column.hpp"
#include "device/queue.hpp"
#include "device/row_index.hpp"

namespace tensorhash::device {

/// Packed keys have at most this many columns.
inline constexpr std::uint32_t kPackedColumns = 4;

/// Views share the slots.
template <class Queue>
class PackedIndex {
public:
    /// Empty.
    PackedIndex(Queue& queue, std::uint64_t slots, bool double_hash, step::HashSecret const& secret)
        : queue_(&queue), memory_(queue, sizeof(step::FlatSlot), slots),
          view_{reinterpret_cast<step::FlatSlot*>(memory_.data()),
                static_cast<std::uint32_t>(slots - 1), 0, double_hash, secret} {
        queue.launch(slots, ClearFlat{view_});
    }

    FlatView const& view() const noexcept { return view_; }
    std::uint64_t slots() const noexcept { return std::uint64_t{view_.mask} + 1; }
    std::shared_ptr<void> owner() const noexcept { return memory_.owner(); }

    void claim(std::int32_t const* rows, std::uint32_t columns, std::uint32_t first_row,
               std::uint32_t count, FlatState* state) {
        queue_->launch(count, ClaimFlat{view_, rows + std::uint64_t{first_row} * columns, columns,
                                        first_row, state, count});
    }
    /// Takes the keys of a smaller index; this one is empty.
    void rehash(PackedIndex const& smaller, FlatState* state) {
        queue_->launch(smaller.slots(), RehashFlat{smaller.view_, view_, state});
    }
    /// Undoes claims.
    void drop_from(std::uint32_t first_row) { queue_->launch(slots(), DropFlat{view_, first_row}); }

private:
    Queue* queue_;
    Column<Queue> memory_;
    FlatView view_;
};

template <class Queue>
class WideRowIndex {
public:
    /// Empty, with room for this many rows.
    WideRowIndex(Queue& queue, std::uint64_t rows, step::HashSecret const& secret)
        : queue_(&queue), slots_(queue, std::bit_ceil(std::max<std::uint64_t>(16, 2 * rows))),
          secret_(secret) {
        queue.fill(slots_.data(), 0xff, slots_.bytes());  // kNoRow
    }

    WideView view() const noexcept {
        return {slots_.data(), static_cast<std::uint32_t>(slots_.size() - 1), secret_};
    }
    std::uint64_t room() const noexcept { return slots_.size() / 2; }
    void drop_from(std::uint32_t first_row) {
        queue_->launch(slots_.size(), DropWide{view(), first_row});
    }

private:
    Queue* queue_;
    Array<Queue, std::uint32_t> slots_;
    step::HashSecret secret_;
};

/// An index over rows that do not change. It is packed if all rows have a packed key, else wide.
/// The device decides, so the host does not wait.
template <class Queue>
class ScratchIndex {
public:
    /// `states` has two entries, zeros before: of the packed and of the wide slots.
    ScratchIndex(Queue& queue, std::int32_t const* rows, std::uint32_t columns, std::uint32_t count,
                 FlatState* states, step::HashSecret const& secret)
        : packed_(queue, columns <= kPackedColumns ? backend::default_slots(count) : 1, false,
                  secret),
          wide_(queue, count, secret),
          view_{columns <= kPackedColumns ? packed_.view() : FlatView{}, states, wide_.view(), rows,
                columns} {
        if (view_.packed.slots != nullptr) {
            packed_.claim(rows, columns, 0, count, states);
        }
        queue.launch(count, ClaimWide{view_, 0, states + 1, count});
    }

    RowIndexView const& view() const noexcept { return view_; }

private:
    PackedIndex<Queue> packed_;
    WideRowIndex<Queue> wide_;
    RowIndexView view_;
};

}  // namespace tensorhash::device
