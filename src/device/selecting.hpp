// The launches behind casts, masks, row numbers, selections and strided copies.
#pragma once

#include <cstdint>
#include <string>

#include "backend/elements.hpp"
#include "device/array.hpp"
#include "device/elements.hpp"
#include "device/queue.hpp"
#include "device/segments.hpp"
#include "device/transfers.hpp"
#include "device/values.hpp"
#include "tensorhash/error.hpp"
#include "tensorhash/tensor.hpp"

namespace tensorhash::device {

template <class Queue>
void cast_elements(Queue& queue, backend::Cast const& request) {
    queue.launch(request.count, CastElements{request.from, request.from_dtype, request.to,
                                             request.to_dtype, request.count});
}

/// The rows that `choice` selects, in ascending order. `count` is their number; waits for it.
template <class Queue, class Choice>
Array<Queue, std::uint32_t> choose_rows(Queue& queue, Choice const& choice, std::uint64_t rows,
                                        std::uint64_t& count) {
    Array<Queue, std::uint32_t> ranks(queue, segments_of(rows));
    auto const total = Array<Queue, std::uint32_t>::zeros(queue, 1);
    queue.launch(rows, CountChosen<Choice>{choice, 0, rows, ranks.data()});
    queue.scan(ranks.data(), ranks.size(), total.data());
    count = read_one(queue, total.data());
    Array<Queue, std::uint32_t> listed(queue, count);
    queue.launch(rows, ListChosen<Choice>{choice, 0, rows, ranks.data(), count, listed.data()});
    return listed;
}

/// Waits once, for the number of rows.
template <class Queue>
Tensor true_rows(Queue& queue, backend::Bytes mask, std::uint64_t rows, Device device) {
    // A byte of a bool may be any number; MaskIs compares with one.
    Array<Queue, unsigned char> const truth(queue, rows);
    cast_elements(queue, {mask, Dtype::Bool, truth.data(), Dtype::Bool, rows});
    std::uint64_t found = 0;
    auto const listed = choose_rows(queue, MaskIs{truth.data(), 1}, rows, found);
    Tensor out = Tensor::empty({static_cast<std::int64_t>(found)}, Dtype::Int64, device);
    queue.launch(found, WidenRows{listed.data(), static_cast<std::int64_t*>(out.data()), found});
    return out;
}

/// Waits once, and once more to say which number is wrong.
template <class Queue>
Array<Queue, std::uint32_t> row_numbers(Queue& queue, backend::PickedRows const& picked) {
    Array<Queue, std::uint32_t> numbers(queue, picked.count);
    FirstFound<Queue> const wrong(queue);
    queue.launch(picked.count, NumberRows{picked.indices, static_cast<std::int64_t>(picked.rows),
                                          numbers.data(), wrong.data(), picked.count});
    if (std::uint64_t const first = wrong.read(); first != kNoElement) {
        backend::fail_row_number(first, read_one(queue, picked.indices + first), picked.rows);
    }
    return numbers;
}

template <class Queue>
void take_rows(Queue& queue, backend::PickedRows const& picked, backend::Bytes from,
               unsigned char* to) {
    Array<Queue, std::uint32_t> const numbers = row_numbers(queue, picked);
    PieceGrid const grid{picked.count, picked.row_bytes, piece_of(picked.row_bytes, to, from)};
    queue.launch(grid.size(), GatherRows{from, numbers.data(), nullptr, nullptr, 0, to, grid});
}

template <class Queue>
void put_rows(Queue& queue, backend::PickedRows const& picked, backend::Bytes from,
              unsigned char* to) {
    auto const count = static_cast<std::uint32_t>(picked.count);
    Array<Queue, std::uint32_t> const owners(queue, picked.rows);
    Array<Queue, unsigned char> const is_last(queue, count);
    Array<Queue, std::uint32_t> const numbers = row_numbers(queue, picked);
    queue.launch(count, ForgetOwners{numbers.data(), owners.data(), count});
    queue.launch(count, RaiseOwners{numbers.data(), owners.data(), count});
    queue.launch(count, ChooseOwners{numbers.data(), owners.data(), is_last.data(), count});
    PieceGrid const grid{count, picked.row_bytes, piece_of(picked.row_bytes, to, from)};
    queue.launch(grid.size(), ScatterRows{to, numbers.data(), is_last.data(), from,
                                          picked.row_bytes, nullptr, grid});
}

/// A copy from a strided array to contiguous memory, or the other way round.
inline CopyStrided strided_copy(void* to, void const* from, Shape const& shape,
                                Shape const& byte_strides, std::size_t element_bytes,
                                bool into_strides = false) {
    if (shape.size() > kMaxAxes) {
        throw ValueError("array: expected at most " + std::to_string(kMaxAxes) +
                         " dimensions on a device, got " + std::to_string(shape.size()));
    }
    CopyStrided body{};
    body.from = static_cast<unsigned char const*>(from);
    body.to = static_cast<unsigned char*>(to);
    body.elements = 1;
    body.element_bytes = static_cast<std::uint32_t>(element_bytes);
    body.axes = static_cast<std::uint32_t>(shape.size());
    body.into_strides = into_strides;
    std::uint64_t steps = element_bytes;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
        body.shape[axis] = static_cast<std::uint64_t>(shape[axis]);
        body.strides[axis] = byte_strides[axis];
        body.elements *= body.shape[axis];
        steps |= static_cast<std::uint64_t>(byte_strides[axis]);
    }
    body.piece = piece_of(steps, to, from);
    return body;
}

template <class Queue>
void paste(Queue& queue, backend::Paste const& request) {
    CopyStrided const body = strided_copy(request.to, request.from, request.shape,
                                          request.byte_strides, request.element_bytes, true);
    queue.launch(body.elements, body);
}

}  // namespace tensorhash::device
