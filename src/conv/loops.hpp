// The inner loops of a convolution, one table of functions per instruction-set level. All columns
// come in whole vectors: weights, tiles and sums are padded with zeros.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace tensorhash::conv {

/// Pairs [begin, end) of a map.
struct Run {
    std::int64_t begin;
    std::int64_t end;
};

/// The pairs of a map: in row, out row. `count` bounds what prefetches read.
struct PairRows {
    std::int32_t const* in;
    std::int32_t const* out;
    std::int64_t count;
};

/// Channels of one group, and the number of groups.
struct Channels {
    std::size_t groups;
    std::size_t in;
    std::size_t out;
};

constexpr std::size_t padded(std::size_t n, std::size_t to) { return (n + to - 1) / to * to; }

/// One tile of out rows. runs[k] are its pairs of offset k, all with out rows from `first_row` on.
template <class T>
struct Tile {
    PairRows pairs;
    Run const* runs;
    std::size_t offsets;
    Channels channels;
    T const* features;         // rows of groups * in elements
    T const* weights;          // as pack_weights() leaves them
    T* out;                    // row first_row; the caller has zeroed the tile
    std::size_t out_stride;    // elements from row to row
    std::size_t group_stride;  // elements from the columns of a group to those of the next
    std::int64_t first_row;
};

/// Pairs that outer() sums in one chain of additions: at every level, so that all give equal bits.
inline constexpr std::int64_t kChunkPairs = 128;

/// One group's sum of products of feature rows and gradient rows, over a run of pairs.
template <class T>
struct Outer {
    PairRows pairs;
    Run run;
    std::size_t in;     // channels of the group
    std::size_t out;    // channels of the group's result
    T const* features;  // at the group's first channel
    std::size_t feature_stride;
    T const* gradient;
    std::size_t gradient_stride;
    T* sums;   // [padded in][padded out], zeroed by the caller
    T* panel;  // panel_elements()
};

template <class T>
struct Loops {
    std::size_t lanes;
    std::size_t block_columns;  // columns that one pass over the channels computes
    void (*tile)(Tile<T> const&);
    void (*outer)(Outer<T> const&);
    /// Rows of `sums` are padded to a multiple of this, which depends on the out channels.
    std::size_t (*outer_rows)(std::size_t out);
};

template <class T>
std::size_t panel_elements(Loops<T> const& loops, std::size_t in, std::size_t out) {
    return static_cast<std::size_t>(kChunkPairs) *
           (padded(in, loops.outer_rows(out)) + padded(out, loops.lanes));
}

struct Level {
    char const* name;
    Loops<float> of_float;
    Loops<double> of_double;
    void (*widen_half)(std::uint16_t const* from, float* to, std::size_t count);
    void (*narrow_half)(float const* from, std::uint16_t* to, std::size_t count);
    void (*widen_bfloat16)(std::uint16_t const* from, float* to, std::size_t count);
    void (*narrow_bfloat16)(float const* from, std::uint16_t* to, std::size_t count);

    template <class T>
    Loops<T> const& loops() const {
        if constexpr (std::is_same_v<T, float>) {
            return of_float;
        } else {
            return of_double;
        }
    }
};

// The levels. A build has those for which it defines TH_HAS_CONV_LEVEL_<level>.
Level const& level_v2();
Level const& level_v3();
Level const& level_v4();
Level const& level_generic();

/// The best level that the machine and TENSORHASH_ISA allow.
Level const& level() noexcept;
/// For tests: level() is `forced` from now on, or the best again if it is null.
void force_level(Level const* forced) noexcept;

}  // namespace tensorhash::conv
