// Exclusive scans, and the count-scan-write pattern that selects rows in order on any number of
// threads. They are in runtime because they need only chunks, and every layer above may use them.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "runtime/parallel.hpp"

namespace tensorhash::runtime {

/// Replaces every count by the sum of the counts before it, and returns the sum of all. A last
/// count of 0 becomes that sum, so n counts and a 0 become n + 1 offsets.
template <class Counts>
auto scan(Counts&& counts) noexcept {
    std::remove_cvref_t<decltype(counts[0])> sum{};
    for (auto& count : counts) sum += std::exchange(count, sum);
    return sum;
}

/// counts[task * groups + group]. Scans the tasks of each group separately: each count becomes the
/// number of items of its group in earlier tasks. Returns the totals of the groups.
template <class Count>
std::vector<Count> scan_tasks(std::span<Count> counts, std::size_t groups) {
    std::vector<Count> totals(groups);
    for (std::size_t first = 0; first < counts.size(); first += groups) {
        for (std::size_t group = 0; group < groups; ++group) {
            totals[group] += std::exchange(counts[first + group], totals[group]);
        }
    }
    return totals;
}

/// counts[task * groups + group]. Scans group by group, and within a group task by task: each count
/// becomes the place of its first item when items are sorted by group, then by task.
template <class Count>
void scan_groups(std::span<Count> counts, std::size_t groups) noexcept {
    Count sum{};
    for (std::size_t group = 0; group < groups; ++group) {
        for (std::size_t at = group; at < counts.size(); at += groups) {
            sum += std::exchange(counts[at], sum);
        }
    }
}

/// Selects some items of every chunk of rows, in row order. count(begin, end) returns how many
/// items the rows have; allocate(total) makes room for all; write(begin, end, place) writes the
/// items of the rows from `place` on. The passes over the chunks run on all threads. Allocates
/// nothing itself.
template <class CountRows, class Allocate, class Write>
void select(Chunks const& chunks, CountRows&& count, Allocate&& allocate, Write&& write) {
    std::array<std::size_t, kMaxChunks> places;
    for_chunks(chunks, [&](std::size_t chunk, std::size_t begin, std::size_t end) {
        places[chunk] = count(begin, end);
    });
    allocate(scan(std::span(places).first(chunks.count)));
    for_chunks(chunks, [&](std::size_t chunk, std::size_t begin, std::size_t end) {
        write(begin, end, places[chunk]);
    });
}

}  // namespace tensorhash::runtime
