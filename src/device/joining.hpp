// Picks the body that joins rows with stored values, by dtype and reduction.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "device/array.hpp"
#include "device/column.hpp"
#include "device/reduce.hpp"

namespace tensorhash::device {

/// Must the rows be sorted by entry? Their order shows in the bits of floats, and only sum, min and
/// max of 4- and 8-byte integers have an atomic operation.
inline bool needs_order(Dtype dtype, Reduce reduce) {
    bool const has_atomic = dtype == Dtype::Int32 || dtype == Dtype::UInt32 ||
                            dtype == Dtype::Int64 || dtype == Dtype::UInt64;
    bool const joins = reduce == Reduce::Sum || reduce == Reduce::Min || reduce == Reduce::Max;
    return reduce == Reduce::Prod || (joins && !has_atomic);
}

/// The rows of a batch sorted by entry. `Queue` sorts; rows of one entry stay in row order.
template <class Queue>
class SortedRows {
public:
    SortedRows() = default;
    SortedRows(Queue& queue, std::uint32_t rows)
        : queue_(&queue), indices_(queue, rows), rows_(queue, rows),
          scratch_(queue, queue.sort_bytes(rows)) {}

    /// `top` is above every index.
    void sort(std::uint32_t const* indices, std::uint64_t top) {
        auto const count = static_cast<std::uint32_t>(rows_.size());
        queue_->copy(indices_.data(), indices, indices_.bytes(), Copy::Within);
        queue_->launch(count, SequenceRows{rows_.data(), count});
        queue_->sort_pairs(indices_.data(), rows_.data(), count,
                           static_cast<int>(std::bit_width(top)), scratch_.data(),
                           scratch_.bytes());
    }
    std::uint32_t const* indices() const noexcept { return indices_.data(); }
    std::uint32_t const* rows() const noexcept { return rows_.data(); }

private:
    Queue* queue_ = nullptr;
    Array<Queue, std::uint32_t> indices_;
    Array<Queue, std::uint32_t> rows_;
    Array<Queue, unsigned char> scratch_;
};

/// One column and the values that a batch has for it.
struct JoinRequest {
    unsigned char* stored;
    backend::ValueRows const& values;
    std::size_t column;
    std::uint32_t elements;
    Rows rows;

    template <class Stored>
    Joined<Stored> as() const {
        return {reinterpret_cast<Stored*>(stored),
                reinterpret_cast<Stored const*>(values.columns[column]), values.order, rows.mask,
                elements};
    }
};

template <class Op, class Queue>
void join_with(Queue& queue, JoinRequest const& request, Dtype dtype,
               SortedRows<Queue> const& sorted) {
    std::uint64_t const threads = std::uint64_t{request.rows.count} * request.elements;
    auto const in_order = [&](auto type) {
        using Type = decltype(type);
        queue.launch(threads,
                     JoinInOrder<Type, Op>{request.as<typename Type::Stored>(), sorted.indices(),
                                           sorted.rows(), request.rows.count});
    };
    auto const atomically = [&](auto number) {
        using T = decltype(number);
        if constexpr (std::is_same_v<Op, JoinProd>) {
            in_order(Plain<T>{});
        } else {
            queue.launch(threads, JoinAtomically<T, Op>{request.as<T>(), request.rows.indices,
                                                        request.rows.count});
        }
    };
    switch (dtype) {
        case Dtype::Bool:
            return in_order(Plain<bool>{});
        case Dtype::Int8:
            return in_order(Plain<std::int8_t>{});
        case Dtype::UInt8:
            return in_order(Plain<std::uint8_t>{});
        case Dtype::Int16:
            return in_order(Plain<std::int16_t>{});
        case Dtype::UInt16:
            return in_order(Plain<std::uint16_t>{});
        case Dtype::Int32:
            return atomically(std::int32_t{});
        case Dtype::UInt32:
            return atomically(std::uint32_t{});
        case Dtype::Int64:
            return atomically(std::int64_t{});
        case Dtype::UInt64:
            return atomically(std::uint64_t{});
        case Dtype::Float16:
            return in_order(Half{});
        case Dtype::BFloat16:
            return in_order(BrainHalf{});
        case Dtype::Float32:
            return in_order(Plain<float>{});
        case Dtype::Float64:
            return in_order(Plain<double>{});
        case Dtype::Undefined:
            return;
    }
}

template <class Queue>
void join(Queue& queue, JoinRequest const& request, Dtype dtype, Reduce reduce,
          SortedRows<Queue> const& sorted) {
    switch (reduce) {
        case Reduce::Sum:
            return join_with<JoinSum>(queue, request, dtype, sorted);
        case Reduce::Min:
            return join_with<JoinMin>(queue, request, dtype, sorted);
        case Reduce::Max:
            return join_with<JoinMax>(queue, request, dtype, sorted);
        case Reduce::Prod:
            return join_with<JoinProd>(queue, request, dtype, sorted);
        default:  // first and last join nothing; callers resolve the others
            return;
    }
}

}  // namespace tensorhash::device
