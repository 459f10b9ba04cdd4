// How large tables and their indices are. Capacities are results, so they follow the rules of
// src/table/growth.cpp; tests compare the two.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backend/table_errors.hpp"
#include "device/grid.hpp"
#include "tensorhash/step/key.hpp"

namespace tensorhash::device {

using backend::kMaxEntries;

/// Positions have 32 bits, eight per bucket.
inline constexpr std::uint64_t kMaxBuckets = std::uint64_t{1} << 29;

struct BucketRule {
    std::uint32_t lanes;
    std::uint32_t entries;   // an index is sized for at most this many live entries per bucket
    std::uint32_t occupied;  // it is rebuilt before live and erased slots per bucket exceed this
};

constexpr BucketRule bucket_rule(step::KeyFormat format) {
    return format.bytes <= 8 ? BucketRule{5, 3, 4} : BucketRule{8, 5, 7};
}

constexpr std::uint64_t buckets_for(step::KeyFormat format, std::uint64_t capacity) {
    std::uint64_t const entries = bucket_rule(format).entries;
    return std::clamp<std::uint64_t>((capacity + entries - 1) / entries, 2, kMaxBuckets);
}

/// New keys fit for certain while no more slots than this are occupied.
constexpr std::uint64_t occupied_limit(step::KeyFormat format, std::uint64_t buckets) {
    BucketRule const rule = bucket_rule(format);
    return buckets == kMaxBuckets ? buckets * rule.lanes - buckets / 2 : buckets * rule.occupied;
}

/// The capacity of a table that needs `needed` rows, by the CPU's rule: it doubles up to 2^16 rows
/// and grows by an eighth from there on.
constexpr std::uint64_t grown_capacity(std::uint64_t capacity, std::uint64_t needed) {
    if (needed <= capacity) {
        return capacity;
    }
    std::uint64_t const more = capacity < std::uint64_t{1} << 16 ? capacity : capacity / 8;
    return std::min(std::max(capacity + more, needed), kMaxEntries);
}

}  // namespace tensorhash::device
