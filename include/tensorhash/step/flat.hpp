// The flat table: 16-byte slots of packed key and row, four per bucket. Probes go slot by slot or
// read whole buckets.
#pragma once

#include "tensorhash/step/atomic.hpp"
#include "tensorhash/step/packed_key.hpp"

namespace tensorhash::step {

// Outside the per-level namespace: host code passes these to every instruction-set level.

inline constexpr std::uint32_t kNoRow = 0xffffffffu;  // -1 as int32

/// An empty slot is {0, kNoRow}. So hit and miss have the same result: the row of the slot where
/// the probe ends.
struct alignas(16) FlatSlot {
    std::uint64_t key;
    std::uint32_t row;
    std::uint32_t unused;
};
static_assert(sizeof(FlatSlot) == 16);

struct FlatView {
    FlatSlot* slots;  // [mask + 1]
    std::uint32_t mask;
    std::uint32_t longest;  // no key is more than this many steps from where its probe begins
    bool double_hash;
    HashSecret secret{};  // the default: Splitmix64Hash
};

inline namespace TH_STEP_NAMESPACE {

/// The slot where a key's probe begins. Equals Splitmix64Hash::hash if the table uses the published
/// hash. `secret.start` is not added to the key: the secret multipliers suffice.
TH_STEP std::uint32_t flat_start(FlatView const& table, std::uint64_t key) {
    return static_cast<std::uint32_t>(avalanche(key, table.secret)) & table.mask;
}

/// Slots per bucket.
inline constexpr std::uint32_t kBucketSlots = 4;

/// Where a probe goes: from its start slot around that bucket, then around the following buckets.
/// It visits all slots of a bucket before the next one, so most lookups touch one cache line. With
/// double hashing it goes by the key's odd stride instead.
class FlatPath {
public:
    TH_STEP FlatPath(FlatView const& table, std::uint64_t key, std::uint32_t start)
        : start_(start), mask_(table.mask),
          stride_(table.double_hash ? Splitmix64Hash::double_hash_stride(key, table.mask) : 0) {}

    TH_STEP std::uint32_t slot(std::uint32_t step) const {
        if (stride_ != 0) {
            return (start_ + step * stride_) & mask_;
        }
        constexpr std::uint32_t kLane = kBucketSlots - 1;
        return (((start_ & ~kLane) + (step & ~kLane)) | ((start_ + step) & kLane)) & mask_;
    }

private:
    std::uint32_t start_;
    std::uint32_t mask_;
    std::uint32_t stride_;  // 0: bucket by bucket
};

/// The row of `key`, or kNoRow if it is absent; kEmptyKey always is. The probe begins at slot
/// `start`. No thread may write meanwhile.
TH_STEP std::uint32_t flat_find(FlatView const& table, std::uint64_t key, std::uint32_t start) {
    FlatPath const path(table, key, start);
    for (std::uint32_t step = 0;; ++step) {
        FlatSlot const& slot = table.slots[path.slot(step)];
        if (slot.key == key || slot.key == kEmptyKey) {
            return slot.row;
        }
        if (step == table.longest) {
            return kNoRow;
        }
    }
}

/// Lanes of a bucket as bits: those that hold the key, and those that are empty.
struct BucketProbe {
    std::uint32_t with_key;
    std::uint32_t empty;
};

TH_STEP BucketProbe probe_bucket(FlatSlot const* bucket, std::uint64_t key) {
#if defined(TH_SIMD_AVX2)
    __m256i const low = _mm256_load_si256(reinterpret_cast<__m256i const*>(bucket));
    __m256i const high = _mm256_load_si256(reinterpret_cast<__m256i const*>(bucket + 2));
    __m256i const keys = _mm256_permute4x64_epi64(_mm256_unpacklo_epi64(low, high), 0xd8);
    auto const bits = [](__m256i lanes) {
        return static_cast<std::uint32_t>(_mm256_movemask_pd(_mm256_castsi256_pd(lanes)));
    };
    __m256i const wanted = _mm256_set1_epi64x(static_cast<long long>(key));
    return {bits(_mm256_cmpeq_epi64(keys, wanted)),
            bits(_mm256_cmpeq_epi64(keys, _mm256_setzero_si256()))};
#else
    BucketProbe answer{0, 0};
    for (std::uint32_t i = 0; i < kBucketSlots; ++i) {
        answer.with_key |= (bucket[i].key == key ? 1u : 0u) << i;
        answer.empty |= (bucket[i].key == kEmptyKey ? 1u : 0u) << i;
    }
    return answer;
#endif
}

/// The result of reading the first bucket of a probe.
struct FirstBucket {
    std::uint32_t row;  // meaningless unless decided
    bool decided;
};

/// Reads only the first bucket, and does not branch on hit, miss or lane, which are unpredictable.
/// For tables of at least one bucket and without double hashing.
TH_STEP FirstBucket probe_first_bucket(FlatView const& table, std::uint64_t key,
                                       std::uint32_t start) {
    FlatSlot const* const bucket = table.slots + (start & ~(kBucketSlots - 1));
    BucketProbe const answer = probe_bucket(bucket, key);
    std::uint32_t const end = answer.with_key != 0 ? answer.with_key : answer.empty;
    return {bucket[lowest_bit(end | 1u << (kBucketSlots - 1))].row, end != 0};
}

/// The same result as flat_find on a table without double hashing, read `Buckets` buckets at a
/// time. Does not branch on hit, miss or lane: an empty slot's row is the answer to a miss.
template <std::uint32_t Buckets>
TH_STEP std::uint32_t flat_find_buckets(FlatView const& table, std::uint64_t key,
                                        std::uint32_t start) {
    constexpr std::uint32_t kSlots = Buckets * kBucketSlots;
    static_assert(kSlots <= 16);
    if (table.mask < kSlots - 1) {  // mask + 1 may not fit 32 bits
        return flat_find(table, key, start);
    }
    std::uint32_t bucket = start & ~(kBucketSlots - 1);
    for (std::uint64_t seen = kSlots;; seen += kSlots) {
        BucketProbe all{0, 0};
        for (std::uint32_t i = 0; i < Buckets; ++i) {
            std::uint32_t const at = (bucket + i * kBucketSlots) & table.mask;
            BucketProbe const one = probe_bucket(table.slots + at, key);
            all.with_key |= one.with_key << (i * kBucketSlots);
            all.empty |= one.empty << (i * kBucketSlots);
        }
        if ((all.with_key | all.empty) != 0) {
            std::uint32_t const end = lowest_bit(all.with_key != 0 ? all.with_key : all.empty);
            return table.slots[(bucket + end) & table.mask].row;
        }
        if (seen > table.longest) {
            return kNoRow;
        }
        bucket = (bucket + kSlots) & table.mask;
    }
}

struct FlatClaim {
    std::uint32_t position;  // the slot that holds the key now
    std::uint32_t steps;     // its distance from where the probe began
    bool claimed;            // the slot was empty
    bool full;               // the key is absent and no slot is empty: nothing changed
};

/// Writes `row` to the key's slot, claiming an empty slot if the key is new. Of all rows with one
/// key the smallest stays. Relaxed order suffices: key and row are each complete in themselves, and
/// a key without a row is fine, because every row of the key writes its own.
template <class Access>
TH_STEP FlatClaim flat_claim(FlatView const& table, std::uint64_t key, std::uint32_t row) {
    FlatPath const path(table, key, flat_start(table, key));
    for (std::uint32_t step = 0;; ++step) {
        std::uint32_t const at = path.slot(step);
        FlatSlot& slot = table.slots[at];
        std::uint64_t seen = Access::load(&slot.key);
        bool claimed = false;
        if (seen == kEmptyKey) {
            claimed = Access::cas(&slot.key, seen, key);
            seen = claimed ? key : seen;
        }
        if (seen == key) {
            std::uint32_t there = Access::load(&slot.row);
            while (row < there && !Access::cas(&slot.row, there, row)) {
            }
            return {at, step, claimed, false};
        }
        if (step == table.mask) {
            return {at, step, false, true};
        }
    }
}

}  // namespace TH_STEP_NAMESPACE
}  // namespace tensorhash::step
