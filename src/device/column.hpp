// Column: one row per buffer index, keys or values, and the launches that move its rows.
#pragma once

#include <cstdint>
#include <memory>

#include "backend/batch.hpp"
#include "device/array.hpp"
#include "device/queue.hpp"
#include "device/reduce.hpp"
#include "device/values.hpp"
#include "tensorhash/dtype.hpp"
#include "tensorhash/reduce.hpp"

namespace tensorhash::device {

/// Where a batch's rows are in the table, and which of them a call writes.
struct Rows {
    std::uint32_t const* indices;
    unsigned char const* mask;
    std::uint32_t count;
};

/// Zeros at first. Views share the memory.
template <class Queue>
class Column {
public:
    Column(Queue& queue, std::uint64_t row_bytes, std::uint64_t capacity)
        : queue_(&queue), row_bytes_(row_bytes), memory_(make(queue, row_bytes, capacity)) {}

    unsigned char* data() const noexcept { return memory_->data(); }
    std::uint64_t bytes() const noexcept { return memory_->bytes(); }
    std::uint64_t row_bytes() const noexcept { return row_bytes_; }
    std::shared_ptr<void> owner() const noexcept { return memory_; }
    bool contains(void const* at, std::size_t size) const noexcept {
        auto const* const begin = static_cast<unsigned char const*>(at);
        return begin < data() + bytes() && begin + size > data();
    }

    /// Copies the first rows to another column. The rows behind them stay zeros there, even if a
    /// cleared table left something here.
    void copy_to(Column const& other, std::uint64_t rows) const {
        queue_->copy(other.data(), data(), rows * row_bytes_, Copy::Within);
    }
    void gather(backend::Gather const& rows, void* out) const {
        auto* const to = static_cast<unsigned char*>(out);
        std::uint32_t const piece =
            piece_of(row_bytes_ | rows.missing.step, data(), to, rows.missing.data);
        PieceGrid const grid{rows.rows, row_bytes_, piece};
        queue_->launch(grid.size(), GatherRows{data(), rows.indices, rows.places, rows.missing.data,
                                               rows.missing.step, to, grid});
    }
    /// Writes the rows of the mask; zeros if `values` is null.
    void scatter(Rows const& rows, backend::Bytes values, std::uint32_t const* order) {
        scatter(rows, {values, row_bytes_}, order);
    }
    void scatter(Rows const& rows, backend::DefaultRows const& values, std::uint32_t const* order) {
        std::uint32_t const piece = piece_of(row_bytes_ | values.step, data(), values.data);
        PieceGrid const grid{rows.count, row_bytes_, piece};
        queue_->launch(grid.size(), ScatterRows{data(), rows.indices, rows.mask, values.data,
                                                values.step, order, grid});
    }

private:
    using Memory = Array<Queue, unsigned char>;
    static std::shared_ptr<Memory> make(Queue& queue, std::uint64_t row_bytes,
                                        std::uint64_t capacity) {
        if (row_bytes != 0 && capacity > (std::uint64_t{1} << 62) / row_bytes) {
            throw std::bad_alloc();
        }
        return std::make_shared<Memory>(Memory::zeros(queue, row_bytes * capacity));
    }

    Queue* queue_;
    std::uint64_t row_bytes_;
    std::shared_ptr<Memory> memory_;
};

}  // namespace tensorhash::device
