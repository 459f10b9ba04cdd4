// Work on some of the rows of a batch. Which ones cannot be predicted, so they are listed first,
// without a branch: a wrong guess costs more than the list.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/inlined.hpp"

namespace tensorhash::runtime {

/// Calls work(row) for the rows of [begin, end) that are wanted, in order, and prefetch(row) for
/// the one that is `Ahead` wanted rows later. `work` must not change which later rows are wanted.
template <std::size_t Ahead, class IsWanted, class Prefetch, class Work>
inline TH_INLINED void for_wanted_rows(std::size_t begin, std::size_t end,
                                       IsWanted const& is_wanted, Prefetch const& prefetch,
                                       Work const& work) {
    constexpr std::size_t kBlock = 1024;
    std::uint16_t wanted[kBlock];
    for (std::size_t first = begin; first < end; first += kBlock) {
        std::size_t const rows = end - first < kBlock ? end - first : kBlock;
        std::size_t count = 0;
        for (std::size_t i = 0; i < rows; ++i) {
            wanted[count] = static_cast<std::uint16_t>(i);
            count += is_wanted(first + i) ? 1 : 0;
        }
        for (std::size_t i = 0; i < (count < Ahead ? count : Ahead); ++i) {
            prefetch(first + wanted[i]);
        }
        for (std::size_t i = 0; i < count; ++i) {
            if (i + Ahead < count) prefetch(first + wanted[i + Ahead]);
            work(first + wanted[i]);
        }
    }
}

/// The same without a prefetch.
template <class IsWanted, class Work>
inline TH_INLINED void for_wanted_rows(std::size_t begin, std::size_t end,
                                       IsWanted const& is_wanted, Work const& work) {
    for_wanted_rows<0>(begin, end, is_wanted, [](std::size_t) {}, work);
}

}  // namespace tensorhash::runtime
