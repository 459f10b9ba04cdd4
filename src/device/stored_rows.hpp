// The rows of a store on a device, in order of insertion, in memory with spare room.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "device/column.hpp"
#include "device/kernel_maps.hpp"
#include "device/order.hpp"

namespace tensorhash::device {

/// Copies and views share the memory.
template <class Queue>
struct StoredRows {
    std::uint32_t columns = 0;  // 0: not set yet
    std::uint64_t entries = 0;
    std::uint64_t room = 0;  // rows that the buffer has memory for
    std::optional<Column<Queue>> buffer{};

    std::int32_t const* numbers() const {
        return reinterpret_cast<std::int32_t const*>(buffer->data());
    }
    std::uint64_t row_bytes() const { return columns * sizeof(std::int32_t); }

    /// No rows of this many columns.
    static StoredRows none(Queue& queue, std::uint32_t columns) {
        StoredRows rows;
        rows.columns = columns;
        rows.buffer.emplace(queue, rows.row_bytes(), 0);
        return rows;
    }

    /// These rows, then fresh ones as int32. `first` as in NarrowRows.
    StoredRows with(Queue& queue, CoordRows const& fresh, std::uint64_t* first) const {
        StoredRows next = *this;
        next.columns = fresh.columns;
        next.entries += fresh.rows;
        if (room < next.entries || !buffer) {
            next.room = std::max(next.entries, entries + entries / 2);
            next.buffer.emplace(queue, next.row_bytes(), next.room);
            if (buffer) {
                buffer->copy_to(*next.buffer, entries);
            }
        }
        unsigned char* const to = next.buffer->data() + entries * next.row_bytes();
        if (fresh.wide()) {
            queue.launch(fresh.rows, NarrowRows{view_of(fresh), reinterpret_cast<std::int32_t*>(to),
                                                first, nullptr, fresh.rows});
        } else {
            queue.copy(to, fresh.tensor.data(), fresh.rows * next.row_bytes(), Copy::Within);
        }
        return next;
    }

    /// int32 [entries, columns], read-only.
    Tensor view(Queue& queue, Device device, std::shared_ptr<Order<Queue>> const& order) const {
        Shape shape{static_cast<std::int64_t>(entries), columns};
        if (!buffer) {
            return Tensor::empty(std::move(shape), Dtype::Int32, device);
        }
        Tensor rows =
            Tensor::borrow(static_cast<void const*>(buffer->data()), std::move(shape), Dtype::Int32,
                           owner_of_view(queue, device, order, buffer->owner()), device);
        rows.written_by(current_stream(device));
        return rows;
    }
};

}  // namespace tensorhash::device
