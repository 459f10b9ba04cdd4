// Ranks by a scan: each warp counts the chosen rows of its segments, a scan adds the counts up, and
// then each warp knows the rank of every chosen row. No barrier: a warp needs only its own count.
#pragma once

#include <cstdint>

#include "device/grid.hpp"

namespace tensorhash::device {

/// A segment is what a warp reads in this many turns of one row per lane.
inline constexpr std::uint32_t kTurns = 8;
inline constexpr std::uint32_t kSegment = kWarp * kTurns;

TH_STEP constexpr std::uint64_t segments_of(std::uint64_t rows) {
    return (rows + kSegment - 1) / kSegment;
}

/// The lanes below this one, as bits.
TH_STEP std::uint32_t lanes_below() { return (1u << Warp::rank()) - 1; }

/// Calls choose(row, is_row) -> bool for all lanes of a warp, row by row, also for the lanes behind
/// the last row. Then counted(segment, chosen rows), in lane 0.
template <class Choose, class Counted>
TH_STEP void count_segments(std::uint64_t rows, Choose const& choose, Counted const& counted) {
    for (std::uint64_t segment = Thread::in_grid() / kWarp; segment < segments_of(rows);
         segment += Thread::grid_size() / kWarp) {
        std::uint32_t count = 0;
        for (std::uint32_t turn = 0; turn < kTurns; ++turn) {
            std::uint64_t const row =
                segment * kSegment + std::uint64_t{turn} * kWarp + Warp::rank();
            count += count_bits(Warp::ballot(choose(row, row < rows)));
        }
        if (Warp::rank() == 0) {
            counted(segment, count);
        }
    }
}

/// Calls visit(row, rank) for each chosen row. `ranks` has the scanned counts of the segments.
template <class Rank, class Choose, class Visit>
TH_STEP void rank_segments(std::uint64_t rows, Rank const* ranks, Choose const& choose,
                           Visit const& visit) {
    for (std::uint64_t segment = Thread::in_grid() / kWarp; segment < segments_of(rows);
         segment += Thread::grid_size() / kWarp) {
        Rank rank = ranks[segment];
        for (std::uint32_t turn = 0; turn < kTurns; ++turn) {
            std::uint64_t const row =
                segment * kSegment + std::uint64_t{turn} * kWarp + Warp::rank();
            bool const chosen = choose(row, row < rows);
            std::uint32_t const all = Warp::ballot(chosen);
            if (chosen) {
                visit(row, static_cast<Rank>(rank + count_bits(all & lanes_below())));
            }
            rank += count_bits(all);
        }
    }
}

/// One block: replaces counts by the sums of the counts before them, and writes the sum of all.
/// `Count` is a 4- or 8-byte unsigned integer.
template <class Count>
struct ScanCounts {
    static constexpr std::uint32_t kThreads = 128;
    struct Shared {
        Count warps[kThreads / kWarp];
    };
    Count* counts;
    Count* total;  // null: not wanted
    std::uint64_t size;

    TH_STEP void operator()(Shared& shared) const {
        Count before = 0;
        for (std::uint64_t first = 0; first < size; first += kThreads) {
            std::uint64_t const at = first + Thread::in_block();
            Count const mine = at < size ? counts[at] : 0;
            Count const up_to_here = scan_warp(mine);
            std::uint32_t const warp = Thread::in_block() / kWarp;
            if (Warp::rank() == kWarp - 1) {
                shared.warps[warp] = up_to_here;
            }
            sync_block();
            Count below = 0;
            Count all = 0;
            for (std::uint32_t w = 0; w < kThreads / kWarp; ++w) {
                below += w < warp ? shared.warps[w] : 0;
                all += shared.warps[w];
            }
            sync_block();
            if (at < size) {
                counts[at] = before + below + up_to_here - mine;
            }
            before += all;
        }
        if (total != nullptr && Thread::in_block() == 0) {
            *total = before;
        }
    }

private:
    /// The sum over the lanes up to this one.
    static TH_STEP Count scan_warp(Count value) {
        std::uint32_t const lane = Warp::rank();
        for (std::uint32_t step = 1; step < kWarp; step *= 2) {
            Count const other = Warp::shuffle(value, lane >= step ? lane - step : lane);
            value += lane >= step ? other : 0;
        }
        return value;
    }
};

/// Rows with this byte in a mask.
struct MaskIs {
    unsigned char const* mask;
    unsigned char wanted;

    TH_STEP bool operator()(std::uint64_t row) const { return mask[row] == wanted; }
};

/// Buffer rows that hold a live entry.
struct IsLive {
    std::uint32_t const* live;

    TH_STEP bool operator()(std::uint64_t row) const {
        return (live[row / 32] >> (row % 32) & 1) != 0;
    }
};

/// Rows with a word below `limit`.
struct IsBelow {
    std::uint32_t const* words;
    std::uint32_t limit;

    TH_STEP bool operator()(std::uint64_t row) const { return words[row] < limit; }
};

/// Counts the chosen rows from `first` on, per segment.
template <class Choice>
struct CountChosen {
    using Shared = NoShared;
    Choice choice;
    std::uint64_t first;
    std::uint64_t rows;
    std::uint32_t* counts;  // [segments_of(rows)]

    TH_STEP void operator()(NoShared&) const {
        count_segments(
            rows, [&](std::uint64_t row, bool is_row) { return is_row && choice(first + row); },
            [&](std::uint64_t segment, std::uint32_t count) { counts[segment] = count; });
    }
};

/// Writes the chosen rows in ascending order, at most `limit` of them. `ranks` has the scanned
/// counts.
template <class Choice>
struct ListChosen {
    using Shared = NoShared;
    Choice choice;
    std::uint64_t first;
    std::uint64_t rows;
    std::uint32_t const* ranks;
    std::uint64_t limit;
    std::uint32_t* out;

    TH_STEP void operator()(NoShared&) const {
        rank_segments(
            rows, ranks,
            [&](std::uint64_t row, bool is_row) { return is_row && choice(first + row); },
            [&](std::uint64_t row, std::uint32_t rank) {
                if (rank < limit) {
                    out[rank] = static_cast<std::uint32_t>(first + row);
                }
            });
    }
};

/// Writes the rank of each chosen row to out[row]; other rows keep what they have.
template <class Choice>
struct RankChosen {
    using Shared = NoShared;
    Choice choice;
    std::uint64_t rows;
    std::uint32_t const* ranks;
    std::int32_t* out;  // [rows]

    TH_STEP void operator()(NoShared&) const {
        rank_segments(
            rows, ranks, [&](std::uint64_t row, bool is_row) { return is_row && choice(row); },
            [&](std::uint64_t row, std::uint32_t rank) {
                out[row] = static_cast<std::int32_t>(rank);
            });
    }
};

}  // namespace tensorhash::device
