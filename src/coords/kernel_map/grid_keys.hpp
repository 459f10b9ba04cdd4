// Coordinates as numbers that sort like the rows. Adding an offset is one addition.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "coords/kernel_map/paths.hpp"

namespace tensorhash::coords {

/// The smallest and the largest number of each column.
struct Bounds {
    std::array<std::int64_t, kMaxColumns> low{};
    std::array<std::int64_t, kMaxColumns> high{};
};
/// Needs at least one row.
Bounds bounds_of(CoordRows const& rows);

/// A number of W words, the most significant first. No sum carries from one word to the next: each
/// word has room for its columns and for every offset (see Grid).
template <std::size_t W> struct GridKey {
    std::array<std::uint64_t, W> words{};

    static GridKey above_all() {
        GridKey key;
        key.words.fill(std::numeric_limits<std::uint64_t>::max());
        return key;
    }
    friend GridKey operator+(GridKey a, GridKey const& b) {
        for (std::size_t w = 0; w < W; ++w) a.words[w] += b.words[w];
        return a;
    }
    friend GridKey operator-(GridKey a, GridKey const& b) {
        for (std::size_t w = 0; w < W; ++w) a.words[w] -= b.words[w];
        return a;
    }
    friend bool operator==(GridKey const&, GridKey const&) = default;
    friend bool operator<(GridKey const& a, GridKey const& b) {
        if constexpr (W == 1) {
            return a.words[0] < b.words[0];
        } else {
            return a.words < b.words;
        }
    }
    /// The difference of the last axes, if the other axes agree.
    std::uint64_t last_minus(GridKey const& b) const { return words[W - 1] - b.words[W - 1]; }
    void add_to_last(std::uint64_t steps) { words[W - 1] += steps; }
};

/// The range of each column and its place in the words. The range covers every in row and every
/// query that can meet one under any offset, so nothing wraps around.
struct Grid {
    struct Column {
        std::int64_t in_low = 0;   // of in_coords
        std::int64_t in_high = 0;  // of in_coords
        std::int64_t first = 0;    // the smallest offset
        std::int64_t last = 0;     // the largest offset
        std::int64_t scale = 1;    // the stride
        std::int64_t base = 0;     // the coordinate that becomes 0
        std::uint64_t extent = 1;  // coordinates from base on
        std::size_t word = 0;
        std::uint64_t weight = 1;  // of one step, in its word
    };
    std::size_t columns = 0;
    std::array<Column, kMaxColumns> column{};
    std::size_t words = 1;
    std::array<std::uint64_t, kMaxColumns> largest{};  // of each word

    /// Needs at least one in row.
    explicit Grid(KernelMapRequest const& request);

    /// Whether the kernel at this row misses the bounding box of the in rows.
    bool out_of_reach(std::int32_t const* row) const noexcept {
        for (std::size_t c = 0; c < columns; ++c) {
            std::int64_t const at = row[c] * column[c].scale;
            if (at + column[c].last < column[c].in_low ||
                at + column[c].first > column[c].in_high) {
                return true;
            }
        }
        return false;
    }
    std::uint64_t in_part(std::int32_t const* row, std::size_t c) const noexcept {
        return static_cast<std::uint64_t>(row[c] - column[c].base) * column[c].weight;
    }
    /// The part of one column in the key of the query's first corner, where its kernel begins.
    std::uint64_t out_part(std::int32_t const* row, std::size_t c) const noexcept {
        return static_cast<std::uint64_t>(row[c] * column[c].scale + column[c].first -
                                          column[c].base) *
               column[c].weight;
    }
    std::uint64_t in_word(std::int32_t const* row, std::size_t word) const noexcept {
        return sum_word(word, [&](std::size_t c) { return in_part(row, c); });
    }
    std::uint64_t out_word(std::int32_t const* row, std::size_t word) const noexcept {
        return sum_word(word, [&](std::size_t c) { return out_part(row, c); });
    }
    /// The difference between an offset and the kernel's first corner.
    template <std::size_t W> GridKey<W> shift(std::int32_t const* offset) const {
        return key<W>([&](std::size_t c) { return c == 0 ? 0 : offset[c - 1] - column[c].first; });
    }
    /// The difference between offset 0 and the kernel's first corner.
    template <std::size_t W> GridKey<W> corner() const {
        return key<W>([&](std::size_t c) { return -column[c].first; });
    }

private:
    template <class Part> std::uint64_t sum_word(std::size_t word, Part part) const noexcept {
        std::uint64_t sum = 0;
        for (std::size_t c = 0; c < columns; ++c) {
            sum += column[c].word == word ? part(c) : 0;
        }
        return sum;
    }
    template <std::size_t W, class Steps> GridKey<W> key(Steps steps) const {
        GridKey<W> made;
        for (std::size_t c = 0; c < columns; ++c) {
            made.words[column[c].word + W - words] +=
                static_cast<std::uint64_t>(steps(c)) * column[c].weight;
        }
        return made;
    }
};

}  // namespace tensorhash::coords
