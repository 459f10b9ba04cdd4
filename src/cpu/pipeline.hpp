// How rows wait for memory without waiting: each row's line is asked for long before its turn, and rows that need a
// second line go on later, together.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensorhash/step/platform.hpp"

// For the bodies of hot loops: as calls they would keep in memory whatever they capture.
#define TH_INLINED __attribute__((always_inline))

namespace tensorhash::cpu {
inline namespace TH_KERNEL_NAMESPACE {

// Rows in flight: enough to hide memory behind hashing and probing, few enough for the line-fill buffers and L1.
inline constexpr std::size_t kAhead = 64;
// Half way to its turn a row's line is near, and what the line points at can be asked for.
inline constexpr std::size_t kHalfWay = kAhead / 2;

/// Rows that must leave their home line.
class LateRows {
public:
    static constexpr std::size_t kRoom = 32;

    /// True if there is no room for another one.
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

/// What is done with a row: its hash first; `half_way(row, hash)` when its line is near; `step(row, hash)` in its turn,
/// which returns false if the home line is not enough; `finish(row, hash)` for those, when the next line is near too.
template <class HashAt, class HalfWay, class Step, class Finish>
struct RowWork {
    HashAt hash_at;
    HalfWay half_way;
    Step step;
    Finish finish;
};

/// Runs the rows [begin, end) through the index's lines.
template <bool ForWrite, class Index, class Work>
inline TH_INLINED void pipeline(Index const& index, std::size_t begin, std::size_t end,
                                Work const& work) {
    std::uint64_t hashes[kAhead];
    LateRows late;
    auto const ask_for = [&](std::uint64_t line) TH_INLINED {
        void const* const address = &index.lines[line & index.line_mask];
        ForWrite ? kernel::prefetch_for_write(address) : kernel::prefetch(address);
    };
    auto const start = [&](std::size_t row) TH_INLINED {
        std::uint64_t const hash = work.hash_at(row);
        hashes[row % kAhead] = hash;
        ask_for(hash);
    };
    auto const half_way = [&](std::size_t row)
                              TH_INLINED { work.half_way(row, hashes[row % kAhead]); };
    // True if the late rows must be finished before the next row.
    auto const is_late = [&](std::size_t row, std::uint64_t hash) TH_INLINED {
        ask_for(hash + 1);
        return late.add(row, hash);
    };

    // Rows below these have one to start, or one that is half way, so many rows ahead.
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
        // Nearly all rows: nothing to ask but whether this loop is over.
        while (row < starting) {
            std::size_t const now = row++;
            std::uint64_t const hash = hashes[now % kAhead];
            start(now + kAhead);
            half_way(now + kHalfWay);
            if (!work.step(now, hash) && is_late(now, hash)) {
                goto finish_late;
            }
        }
        while (row < end) {
            std::size_t const now = row++;
            if (now < halving) {
                half_way(now + kHalfWay);
            }
            if (!work.step(now, hashes[now % kAhead]) && is_late(now, hashes[now % kAhead])) {
                break;
            }
        }
    finish_late:
        late.drain(work.finish);
    }
}

}  // namespace TH_KERNEL_NAMESPACE
}  // namespace tensorhash::cpu
