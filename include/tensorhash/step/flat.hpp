// The flat table: packed key and row side by side in 16-byte slots, four to a line, probed one by one or by windows.
#pragma once

#include "tensorhash/step/atomic.hpp"
#include "tensorhash/step/packed_key.hpp"

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
    HashSecret secret{};  // the default: Splitmix64Hash
};

inline namespace TH_KERNEL_NAMESPACE {

/// The slot where a key's probe begins: Splitmix64Hash::hash, if the table has the published hash.
/// That adds nothing to a key before it mixes it, and the multipliers are secret enough.
TH_STEP std::uint32_t flat_start(FlatView const& table, std::uint64_t key) {
    return static_cast<std::uint32_t>(avalanche(key, table.secret)) & table.mask;
}

/// Slots of a line, which a lookup reads in one go.
inline constexpr std::uint32_t kLineSlots = 4;

/// Where a probe goes: from the hash's slot round its line, then round the next lines; with double hashing by the
/// key's odd stride. All slots of a line come before another line's, so that most lookups touch one line.
class FlatPath {
public:
    TH_STEP FlatPath(FlatView const& table, std::uint64_t key, std::uint32_t start)
        : start_(start), mask_(table.mask),
          stride_(table.double_hash ? Splitmix64Hash::double_hash_stride(key, table.mask) : 0) {}

    TH_STEP std::uint32_t slot(std::uint32_t step) const {
        if (stride_ != 0) {
            return (start_ + step * stride_) & mask_;
        }
        constexpr std::uint32_t kLane = kLineSlots - 1;
        return (((start_ & ~kLane) + (step & ~kLane)) | ((start_ + step) & kLane)) & mask_;
    }

private:
    std::uint32_t start_;
    std::uint32_t mask_;
    std::uint32_t stride_;  // 0: by lines
};

/// The row of `key`, whose hash is slot `start`; kNoRow if it is not there, as for kEmptyKey. Nobody writes meanwhile.
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

/// Which slots of a line have a key and which are empty, a bit each.
struct LineAnswer {
    std::uint32_t with_key;
    std::uint32_t empty;
};

TH_STEP LineAnswer ask_line(FlatSlot const* line, std::uint64_t key) {
#if defined(TH_SIMD_AVX2)
    __m256i const low = _mm256_load_si256(reinterpret_cast<__m256i const*>(line));
    __m256i const high = _mm256_load_si256(reinterpret_cast<__m256i const*>(line + 2));
    __m256i const keys = _mm256_permute4x64_epi64(_mm256_unpacklo_epi64(low, high), 0xd8);
    auto const bits = [](__m256i lanes) {
        return static_cast<std::uint32_t>(_mm256_movemask_pd(_mm256_castsi256_pd(lanes)));
    };
    __m256i const wanted = _mm256_set1_epi64x(static_cast<long long>(key));
    return {bits(_mm256_cmpeq_epi64(keys, wanted)),
            bits(_mm256_cmpeq_epi64(keys, _mm256_setzero_si256()))};
#else
    LineAnswer answer{0, 0};
    for (std::uint32_t i = 0; i < kLineSlots; ++i) {
        answer.with_key |= (line[i].key == key ? 1u : 0u) << i;
        answer.empty |= (line[i].key == kEmptyKey ? 1u : 0u) << i;
    }
    return answer;
#endif
}

/// What the first line of a probe says.
struct FirstLine {
    std::uint32_t row;  // of no meaning unless decided
    bool decided;
};

/// Asks the first line only, without a branch: hit or miss, and where in the line, nobody can predict. For tables of at
/// least a line and without double hashing.
TH_STEP FirstLine ask_first_line(FlatView const& table, std::uint64_t key, std::uint32_t start) {
    FlatSlot const* const line = table.slots + (start & ~(kLineSlots - 1));
    LineAnswer const answer = ask_line(line, key);
    std::uint32_t const end = answer.with_key != 0 ? answer.with_key : answer.empty;
    return {line[lowest_bit(end | 1u << (kLineSlots - 1))].row, end != 0};
}

/// The same answer as flat_find on a table without double hashing, `Lines` lines at a time. Hit or miss, and where in
/// the line, costs no branch: an empty slot's row is the answer to a miss.
template <std::uint32_t Lines>
TH_STEP std::uint32_t flat_find_lines(FlatView const& table, std::uint64_t key,
                                      std::uint32_t start) {
    constexpr std::uint32_t kSlots = Lines * kLineSlots;
    static_assert(kSlots <= 16);
    if (table.mask < kSlots - 1) {  // mask + 1 may not fit 32 bits
        return flat_find(table, key, start);
    }
    std::uint32_t line = start & ~(kLineSlots - 1);
    for (std::uint64_t seen = kSlots;; seen += kSlots) {
        LineAnswer all{0, 0};
        for (std::uint32_t i = 0; i < Lines; ++i) {
            std::uint32_t const at = (line + i * kLineSlots) & table.mask;
            LineAnswer const one = ask_line(table.slots + at, key);
            all.with_key |= one.with_key << (i * kLineSlots);
            all.empty |= one.empty << (i * kLineSlots);
        }
        if ((all.with_key | all.empty) != 0) {
            std::uint32_t const end = lowest_bit(all.with_key != 0 ? all.with_key : all.empty);
            return table.slots[(line + end) & table.mask].row;
        }
        if (seen > table.longest) {
            return kNoRow;
        }
        line = (line + kSlots) & table.mask;
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

}  // namespace TH_KERNEL_NAMESPACE
}  // namespace tensorhash::kernel
