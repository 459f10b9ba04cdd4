// Pending: a change of a device's table that has all its memory but is not made yet.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "backend/table_backend.hpp"
#include "device/core.hpp"
#include "device/joining.hpp"

namespace tensorhash::device {

/// Finds the last row of each entry, with one word of scratch memory per buffer row.
template <class Queue>
class LastRows {
public:
    LastRows() = default;
    LastRows(Queue& queue, std::uint64_t capacity, std::uint32_t rows)
        : queue_(&queue), owners_(queue, capacity), mask_(queue, rows) {}

    /// Rows with index -1 have no entry.
    unsigned char const* choose(std::uint32_t const* indices) {
        auto const rows = static_cast<std::uint32_t>(mask_.size());
        queue_->launch(rows, ForgetOwners{indices, owners_.data(), rows});
        queue_->launch(rows, RaiseOwners{indices, owners_.data(), rows});
        queue_->launch(rows, ChooseOwners{indices, owners_.data(), mask_.data(), rows});
        return mask_.data();
    }

private:
    Queue* queue_ = nullptr;
    Array<Queue, std::uint32_t> owners_;
    Array<Queue, unsigned char> mask_;
};

template <class Queue>
struct Pending final : backend::Prepared {
    explicit Pending(backend::Change const& what) : change(what) {}

    backend::Change change;
    Array<Queue, unsigned char> keys;  // an aligned copy, if the caller's keys are not aligned
    std::optional<typename Core<Queue>::Insertion> insertion;
    std::optional<typename Core<Queue>::Erasing> erasing;
    std::vector<Column<Queue>> columns;  // of a new capacity or without gaps
    typename Core<Queue>::Growth growth;
    LastRows<Queue> last;
    SortedRows<Queue> sorted;
    std::uint64_t entries = 0;  // of a compacted table
    std::uint32_t end = 0;      // the capacity of a table that shrinks
};

}  // namespace tensorhash::device
