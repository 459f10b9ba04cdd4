// The flat table: packed key and row side by side in 16-byte slots, four to a line, probed one by one or by windows.
#pragma once

#include "tensorhash/kernel/atomic.hpp"
#include "tensorhash/kernel/packed_key.hpp"

namespace tensorhash::kernel {

// Not in the instruction set's namespace: host code hands these to every level of the back end.

inline constexpr std::uint32_t kNoRow = 0xffffffffu;  // -1 as int32

/// Empty: {0, kNoRow}. A hit or a miss is then one answer, the row of the slot where the probe ends.
struct alignas(16) FlatSlot {
    std::uint64_t key;
    std::uint32_t row;
    std::uint32_t unused;
};
static_assert(sizeof(FlatSlot) == 16);

struct FlatView {
    FlatSlot* slots;  // [mask + 1]
    std::uint32_t mask;
    std::uint32_t longest;  // no key lies more steps than this from where its probe begins
    bool double_hash;
};

inline namespace TH_KERNEL_NAMESPACE {

TH_STEP std::uint32_t flat_stride(FlatView const& table, std::uint64_t key) {
    return table.double_hash ? Splitmix64Hash::double_hash_stride(key, table.mask) : 1u;
}

/// The row of `key`, whose probe begins at slot `at`; kNoRow if it is not there, as for kEmptyKey. Nobody writes meanwhile.
TH_STEP std::uint32_t flat_find(FlatView const& table, std::uint64_t key, std::uint32_t at) {
    std::uint32_t const stride = flat_stride(table, key);
    for (std::uint32_t steps = 0;; ++steps, at = (at + stride) & table.mask) {
        FlatSlot const& slot = table.slots[at];
        if (slot.key == key || slot.key == kEmptyKey) {
            return slot.row;
        }
        if (steps == table.longest) {
            return kNoRow;
        }
    }
}

/// Slots that a window looks at in one go: a line of them.
inline constexpr std::uint32_t kWindow = 4;

/// Bit i: the slot window[i] ends a probe for `key`, since it has the key or is empty.
TH_STEP std::uint32_t window_ends(FlatSlot const* window, std::uint64_t key) {
#if defined(TH_SIMD_AVX2)
    __m256i const low = _mm256_loadu_si256(reinterpret_cast<__m256i const*>(window));
    __m256i const high = _mm256_loadu_si256(reinterpret_cast<__m256i const*>(window + 2));
    __m256i const keys = _mm256_permute4x64_epi64(_mm256_unpacklo_epi64(low, high), 0xd8);
    __m256i const wanted = _mm256_set1_epi64x(static_cast<long long>(key));
    __m256i const ends = _mm256_or_si256(_mm256_cmpeq_epi64(keys, wanted),
                                         _mm256_cmpeq_epi64(keys, _mm256_setzero_si256()));
    return static_cast<std::uint32_t>(_mm256_movemask_pd(_mm256_castsi256_pd(ends)));
#else
    std::uint32_t ends = 0;
    for (std::uint32_t i = 0; i < kWindow; ++i) {
        std::uint64_t const seen = window[i].key;
        ends |= (seen == key || seen == kEmptyKey ? 1u : 0u) << i;
    }
    return ends;
#endif
}

/// The same answer as flat_find on a table of stride 1, by windows of `Lines` whole lines: where in a window the probe
/// ends costs no branch.
template <std::uint32_t Lines>
TH_STEP std::uint32_t flat_find_windows(FlatView const& table, std::uint64_t key,
                                        std::uint32_t at) {
    static_assert(Lines * kWindow <= 16);
    constexpr std::uint32_t kSlots = Lines * kWindow;
    if (table.mask + 1 < kSlots) {
        return flat_find(table, key, at);
    }
    std::uint32_t skip = at % kSlots;  // slots of the first window that come before the probe
    std::uint32_t begin = at - skip;
    for (std::uint64_t seen = 0;; begin = (begin + kSlots) & table.mask) {
        std::uint32_t ends = 0;
        for (std::uint32_t line = 0; line < Lines; ++line) {
            ends |= window_ends(table.slots + begin + line * kWindow, key) << (line * kWindow);
        }
        ends = ends >> skip << skip;
        if (ends != 0) {
            return table.slots[begin + lowest_bit(ends)].row;
        }
        seen += kSlots - skip;
        skip = 0;
        if (seen > table.longest) {
            return kNoRow;
        }
    }
}

struct FlatClaim {
    std::uint32_t position;  // the slot that has the key now
    std::uint32_t steps;     // how far that is from where the probe began
    bool claimed;            // the slot was empty
    bool full;               // no slot has the key and none is empty: nothing was done
};

/// Leaves `row` at the key's slot, claiming one if the key is new; of all rows that come for a key the smallest stays.
/// Relaxed orders suffice: a key and a row carry their whole meaning, and a key without a row is ordinary here, since
/// whoever comes next leaves its own.
template <class Access>
TH_STEP FlatClaim flat_claim(FlatView const& table, std::uint64_t key, std::uint32_t row) {
    std::uint32_t at = Splitmix64Hash::hash(key, table.mask);
    std::uint32_t const stride = flat_stride(table, key);
    for (std::uint32_t steps = 0;; ++steps, at = (at + stride) & table.mask) {
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
            return {at, steps, claimed, false};
        }
        if (steps == table.mask) {
            return {at, steps, false, true};
        }
    }
}

}  // namespace TH_KERNEL_NAMESPACE
}  // namespace tensorhash::kernel
