// Writing the pairs of many words, and where the pairs of each task's groups go.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "coords/kernel_map/question.hpp"

namespace tensorhash::coords {

/// Counts of every task and group, which become places: a group's pairs lie in the order of the tasks.
class GroupPlaces {
public:
    GroupPlaces(std::size_t tasks, std::size_t groups)
        : tasks_(tasks), groups_(groups), next_(tasks * groups) {}

    /// Of one task: its counts, and after totals() where its pairs begin within each group.
    std::int64_t* of(std::size_t task) { return next_.data() + task * groups_; }
    std::vector<std::int64_t> totals() {
        std::vector<std::int64_t> totals(groups_);
        for (std::size_t task = 0; task < tasks_; ++task) {
            std::int64_t* const counts = of(task);
            for (std::size_t group = 0; group < groups_; ++group) {
                totals[group] += std::exchange(counts[group], totals[group]);
            }
        }
        return totals;
    }
    /// Where a task's pairs begin in the whole map.
    std::int64_t* places(std::size_t task, std::span<std::int64_t const> offsets) {
        std::int64_t* const next = of(task);
        for (std::size_t group = 0; group < groups_; ++group) next[group] += offsets[group];
        return next;
    }

private:
    std::size_t tasks_;
    std::size_t groups_;
    std::vector<std::int64_t> next_;  // [task, group]
};

/// Which of some words are not zero: without a branch, since nobody can predict it. Returns how many.
template <std::size_t Count>
std::size_t list_filled(std::uint64_t const* words, std::array<std::uint8_t, Count>& places) {
    std::size_t filled = 0;
    for (std::size_t i = 0; i < Count; ++i) {
        places[filled] = static_cast<std::uint8_t>(i);
        filled += words[i] != 0;
    }
    return filled;
}

/// A pair, and the place that it takes.
struct Pair {
    std::int64_t* next;
    std::uint32_t in_row;
    std::uint32_t out_row;
};

/// Writes the pairs of words: `PairOf::Found` has a word, and PairOf()(found, bit) is the pair of one of its bits. How
/// many a word holds nobody can guess, so words are listed first, and one loop goes over all their pairs.
template <class PairOf>
class PairWriter {
public:
    using Found = typename PairOf::Found;

    PairWriter(Answer& answer, PairOf pair_of)
        : pair_of_(pair_of), in_maps_(answer.in_maps.as_mutable<std::int32_t>().data()),
          out_maps_(answer.out_maps.as_mutable<std::int32_t>().data()) {}

    /// The word is not zero.
    void add(Found const& found) {
        list_[listed_++] = found;
        pairs_ += static_cast<std::size_t>(std::popcount(found.word));
        if (listed_ == kListed) flush();
    }

    void flush() {
        Found const* at = list_.data();
        std::uint64_t word = at->word;
        for (; pairs_ != 0; --pairs_) {
            Pair const pair = pair_of_(*at, static_cast<std::size_t>(std::countr_zero(word)));
            std::int64_t const to = (*pair.next)++;
            in_maps_[to] = static_cast<std::int32_t>(pair.in_row);
            out_maps_[to] = static_cast<std::int32_t>(pair.out_row);
            word &= word - 1;
            bool const done = word == 0;  // then on to the next word, without a branch
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
    std::array<Found, kListed + 1> list_{};
    std::size_t listed_ = 0;
    std::size_t pairs_ = 0;
};

}  // namespace tensorhash::coords
