// Writes the pairs of many words, and places the groups of each task.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "coords/kernel_map/paths.hpp"
#include "runtime/scan.hpp"

namespace tensorhash::coords {

/// The pair counts of every task and group, which become places. Within a group, the pairs of the
/// first task come first.
class GroupPlaces {
public:
    GroupPlaces(std::size_t tasks, std::size_t groups) : groups_(groups), next_(tasks * groups) {}

    /// The counts of one task; after totals(), where its pairs begin within each group.
    std::int64_t* of(std::size_t task) { return next_.data() + task * groups_; }
    std::vector<std::int64_t> totals() { return runtime::scan_tasks(std::span(next_), groups_); }
    /// Where a task's pairs begin in the whole map.
    std::int64_t* places(std::size_t task, std::span<std::int64_t const> offsets) {
        std::int64_t* const next = of(task);
        for (std::size_t group = 0; group < groups_; ++group) next[group] += offsets[group];
        return next;
    }

private:
    std::size_t groups_;
    std::vector<std::int64_t> next_;  // [task, group]
};

/// Lists the nonzero words and returns their count. No branch: it would be unpredictable.
template <std::size_t Count>
std::size_t list_filled(std::uint64_t const* words, std::array<std::uint8_t, Count>& places) {
    std::size_t filled = 0;
    for (std::size_t i = 0; i < Count; ++i) {
        places[filled] = static_cast<std::uint8_t>(i);
        filled += words[i] != 0;
    }
    return filled;
}

/// A pair, and the counter that gives its place.
struct Pair {
    std::int64_t* next;
    std::uint32_t in_row;
    std::uint32_t out_row;
};

/// Writes the pairs of words: `PairOf::Match` has a word, and PairOf()(match, bit) is the pair of
/// one of its bits. The number of pairs in a word is unpredictable. So the writer lists words
/// first, then runs one loop over all their pairs.
template <class PairOf>
class PairWriter {
public:
    using Match = typename PairOf::Match;

    PairWriter(KernelMapPairs& pairs, PairOf pair_of)
        : pair_of_(pair_of), in_maps_(pairs.in_maps.as_mutable<std::int32_t>().data()),
          out_maps_(pairs.out_maps.as_mutable<std::int32_t>().data()) {}

    /// The word is not zero.
    void add(Match const& match) {
        list_[listed_++] = match;
        pairs_ += static_cast<std::size_t>(std::popcount(match.word));
        if (listed_ == kListed) flush();
    }

    void flush() {
        Match const* at = list_.data();
        std::uint64_t word = at->word;
        for (; pairs_ != 0; --pairs_) {
            Pair const pair = pair_of_(*at, static_cast<std::size_t>(std::countr_zero(word)));
            std::int64_t const to = (*pair.next)++;
            in_maps_[to] = static_cast<std::int32_t>(pair.in_row);
            out_maps_[to] = static_cast<std::int32_t>(pair.out_row);
            word &= word - 1;
            bool const done = word == 0;  // then the next word, without a branch
            word |= at[1].word & -std::uint64_t{done};
            at += done;
        }
        listed_ = 0;
    }

private:
    static constexpr std::size_t kListed = 64;

    PairOf pair_of_;
    std::int32_t* in_maps_;
    std::int32_t* out_maps_;
    std::array<Match, kListed + 1> list_{};
    std::size_t listed_ = 0;
    std::size_t pairs_ = 0;
};

}  // namespace tensorhash::coords
