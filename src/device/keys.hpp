// The keys of a batch as device code needs them.
#pragma once

#include <cstdint>
#include <string>

#include "backend/batch.hpp"
#include "device/array.hpp"
#include "device/queue.hpp"
#include "device/readers.hpp"
#include "device/sizes.hpp"
#include "tensorhash/dtype.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::device {

inline step::KeyFormat format_of(Element const& key) {
    bool const is_float = key.dtype == Dtype::Float32 || key.dtype == Dtype::Float64;
    return {static_cast<std::uint32_t>(key.bytes()),
            is_float ? static_cast<std::uint32_t>(byte_size(key.dtype)) : 0};
}

inline std::uint32_t to_rows(std::size_t rows) {
    if (rows > kMaxEntries) {
        throw ValueError("keys: a batch on a device has at most " + std::to_string(kMaxEntries) +
                         " rows, got " + std::to_string(rows));
    }
    return static_cast<std::uint32_t>(rows);
}

/// Keys at an address that device code can read. `copy` holds them if they had to be moved.
template <class Queue>
unsigned char const* aligned_keys(Queue& queue, backend::KeyRows const& keys,
                                  step::KeyFormat format, Array<Queue, unsigned char>& copy) {
    auto const address = reinterpret_cast<std::uintptr_t>(keys.data);
    if (address % key_align(format) == 0) {
        return keys.data;
    }
    copy = {queue, keys.rows * format.bytes};
    queue.copy(copy.data(), keys.data, copy.bytes(), Copy::Within);
    return copy.data();
}

}  // namespace tensorhash::device
