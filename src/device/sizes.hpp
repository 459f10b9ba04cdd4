// How large tables and their indices may be.
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

struct BucketLoad {
    std::uint32_t lanes;
    std::uint32_t entries;   // an index is sized for at most this many live entries per bucket
    std::uint32_t occupied;  // it is rebuilt before live and erased slots per bucket exceed this
};

constexpr BucketLoad bucket_load(step::KeyFormat format) {
    return format.bytes <= 8 ? BucketLoad{5, 3, 4} : BucketLoad{8, 5, 7};
}

constexpr std::uint64_t buckets_for(step::KeyFormat format, std::uint64_t capacity) {
    std::uint64_t const entries = bucket_load(format).entries;
    return std::clamp<std::uint64_t>((capacity + entries - 1) / entries, 2, kMaxBuckets);
}

/// New keys fit for certain while no more slots than this are occupied.
constexpr std::uint64_t occupied_limit(step::KeyFormat format, std::uint64_t buckets) {
    BucketLoad const load = bucket_load(format);
    return buckets == kMaxBuckets ? buckets * load.lanes - buckets / 2 : buckets * load.occupied;
}

}  // namespace tensorhash::device
