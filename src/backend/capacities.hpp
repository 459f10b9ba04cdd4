// Capacities that calls return: results, so the same on every device.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "backend/table_errors.hpp"

namespace tensorhash::backend {

/// Buffers from this capacity on grow by an eighth: the CPU moves their pages, so that costs
/// little. Smaller ones are copied, so they double.
inline constexpr std::uint64_t kLargeCapacity = std::uint64_t{1} << 16;

/// The capacity that a table grows to if it needs `needed` rows: that many, or twice `capacity` of
/// a small table and an eighth more than that of a large one, whichever is more. Never more than
/// kMaxEntries, even if more are needed.
constexpr std::uint64_t grown_capacity(std::uint64_t capacity, std::uint64_t needed) noexcept {
    if (needed <= capacity) {
        return capacity;
    }
    std::uint64_t const more = capacity < kLargeCapacity ? capacity : capacity / 8;
    return std::min(std::max(capacity + more, needed), kMaxEntries);
}

/// The slots of a store of coordinates without a fixed capacity that has this many distinct keys:
/// at most half full, at least 16, up to 2^31.
constexpr std::uint64_t default_slots(std::uint64_t keys) noexcept {
    return std::min(std::bit_ceil(std::max<std::uint64_t>(16, 2 * keys)), std::uint64_t{1} << 31);
}

}  // namespace tensorhash::backend
