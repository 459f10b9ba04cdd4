// Software prefetch pipeline: each row's bucket is prefetched long before its turn. Rows that need
// a second bucket are finished later, together.
// `pipeline_of` has over 50 lines: its loops share registers, and calls between them would cost
// time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu/row_hash.hpp"
#include "runtime/inlined.hpp"
#include "tensorhash/step/probe.hpp"

namespace tensorhash::cpu {
inline namespace TH_STEP_NAMESPACE {

// Rows in flight: enough to hide memory latency behind hashing and probing, few enough for L1.
inline constexpr std::size_t kAhead = 128;
// Half way to its turn, a row's bucket has arrived, and what it points at can be prefetched.
inline constexpr std::size_t kHalfWay = kAhead / 2;

/// Rows that must leave their home bucket.
class LateRows {
public:
    static constexpr std::size_t kRoom = 32;

    /// Returns true if there is no room for another row.
    TH_INLINED bool add(std::size_t row, std::uint64_t hash) {
        rows_[count_] = row;
        hashes_[count_] = hash;
        return ++count_ == kRoom;
    }
    template <class Finish>
    TH_INLINED void drain(Finish const& finish) {
        for (std::size_t i = 0; i < count_; ++i) {
            finish(rows_[i], hashes_[i]);
        }
        count_ = 0;
    }

private:
    std::size_t rows_[kRoom];
    std::uint64_t hashes_[kRoom];
    std::size_t count_ = 0;
};

/// What happens to a row: its hash first, by `hash_rows.hash(row)` or, if kRows rows are hashed
/// together, by `hash_rows(row, end, out)`; `half_way(row, hash, home)` when its
/// bucket has arrived; `step(row, hash, home)` at its turn, which returns false if the home bucket
/// is not enough; `finish(row, hash)` for those rows, when the next bucket has arrived too.
template <class HashRows, class HalfWay, class Step, class Finish>
struct RowWork {
    HashRows hash_rows;
    HalfWay half_way;
    Step step;
    Finish finish;
};
// clang 16 does not deduce the arguments of an aggregate by itself.
template <class HashRows, class HalfWay, class Step, class Finish>
RowWork(HashRows, HalfWay, Step, Finish) -> RowWork<HashRows, HalfWay, Step, Finish>;

/// Runs the rows [begin, end) through the buckets of their indices.
template <bool ForWrite, class IndexAt, class Work>
inline TH_INLINED void pipeline_of(IndexAt const& index_at, std::size_t begin, std::size_t end,
                                   Work const& work) {
    // Rows that are hashed together get adjacent elements, also at the end of the ring.
    constexpr std::size_t kTogether = decltype(work.hash_rows)::kRows;
    // Rows in flight and those that are hashed before them. One by one, a row takes the place of
    // the row at its turn.
    constexpr std::size_t kRing = kTogether == 1 ? kAhead : 2 * kAhead;
    static_assert(kAhead % kTogether == 0 && 2 * kTogether <= kAhead);
    alignas(64) std::uint64_t hashes[kRing + kTogether];
    alignas(64) std::uint32_t homes[kRing + kTogether];
    LateRows late;
    auto const prefetch_bucket = [&](auto const& index, std::uint64_t bucket) TH_INLINED {
        void const* const address = &index.buckets[bucket];
        ForWrite ? step::prefetch_for_write(address) : step::prefetch(address);
    };
    // A home is cheap to compute again, but not from a vector of hashes.
    auto const home_of = [&](std::size_t row, std::uint64_t hash) TH_INLINED -> std::uint64_t {
        return kTogether == 1 ? index_at(row).home(hash) : homes[row % kRing];
    };
    auto const hash_from = [&](std::size_t row) TH_INLINED {
        if constexpr (kTogether > 1) {
            if (row < end) {
                work.hash_rows(row, end, HashedRows{&hashes[row % kRing], &homes[row % kRing]});
            }
        }
    };
    // Rows that are hashed together start one by one, much later: prefetches in bursts are slow.
    auto const start = [&](std::size_t row) TH_INLINED {
        if constexpr (kTogether == 1) {
            hashes[row % kRing] = work.hash_rows.hash(row);
        } else if (row % kTogether == 0) {
            hash_from(row + kTogether);
        }
        prefetch_bucket(index_at(row), home_of(row, hashes[row % kRing]));
    };
    auto const half_way = [&](std::size_t row) TH_INLINED {
        std::uint64_t const& hash = hashes[row % kRing];
        work.half_way(row, hash, home_of(row, hash));
    };
    // True if the late rows must be finished before the next row.
    auto const is_late = [&](std::size_t row, std::uint64_t hash) TH_INLINED {
        auto const& index = index_at(row);
        prefetch_bucket(index, step::next_bucket(index, home_of(row, hash)));
        return late.add(row, hash);
    };
    // True if the row is done, or late without filling the list.
    auto const step = [&](std::size_t row, std::uint64_t hash) TH_INLINED {
        return work.step(row, hash, home_of(row, hash)) || !is_late(row, hash);
    };

    // Each row below `starting` starts the row kAhead later. Each row below `halving` calls
    // half_way for the row kHalfWay later.
    if constexpr (kTogether > 1) {
        hash_from(begin);
        hash_from((begin / kTogether + 1) * kTogether);
    }
    std::size_t const starting = end - begin > kAhead ? end - kAhead : begin;
    std::size_t const halving = end - begin > kHalfWay ? end - kHalfWay : begin;
    for (std::size_t row = begin; row < (starting == begin ? end : begin + kAhead); ++row) {
        start(row);
    }
    for (std::size_t row = begin; row < (halving == begin ? end : begin + kHalfWay); ++row) {
        half_way(row);
    }
    std::size_t row = begin;
    while (row < end) {
        // Nearly all rows run here, with no check but the end of the loop.
        while (row < starting) {
            std::size_t const now = row++;
            std::uint64_t const hash = hashes[now % kRing];
            start(now + kAhead);
            half_way(now + kHalfWay);
            if (!step(now, hash)) {
                goto finish_late;
            }
        }
        while (row < end) {
            std::size_t const now = row++;
            if (now < halving) {
                half_way(now + kHalfWay);
            }
            if (!step(now, hashes[now % kRing])) {
                break;
            }
        }
    finish_late:
        late.drain(work.finish);
    }
}

/// The same for rows of one index.
template <bool ForWrite, class Index, class Work>
inline TH_INLINED void pipeline(Index const& index, std::size_t begin, std::size_t end,
                                Work const& work) {
    pipeline_of<ForWrite>([&index](std::size_t) TH_INLINED -> Index const& { return index; }, begin,
                          end, work);
}

}  // namespace TH_STEP_NAMESPACE
}  // namespace tensorhash::cpu
