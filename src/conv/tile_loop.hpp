// Forward products of one tile: groups of R pairs, sums of NV vectors per pair in registers over
// all channels, then added to the out rows, which stay in cache until the tile is done.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "conv/loops.hpp"
#include "conv/vectors.hpp"
#include "runtime/inlined.hpp"

namespace tensorhash::conv {
inline namespace TH_STEP_NAMESPACE {

/// Channels in one chain of additions. A part of the result: the same at all levels.
inline constexpr std::size_t kChainChannels = 1024;

/// One column block of one offset, for one stretch of channels.
template <class T>
struct ColumnBlock {
    PairRows pairs;
    T const* features;  // at the first channel
    std::size_t feature_stride;
    std::size_t channels;
    T const* weights;  // [channels][NV vectors]
    T* out;            // at the first column of row first_row
    std::size_t out_stride;
    std::int64_t first_row;
    bool fetches;  // the first block prefetches feature rows for all
};

/// Adds the products of R pairs from `at` on. `ahead`: rows to prefetch meanwhile, or null.
template <class T, int R, int NV>
inline void add_pairs(ColumnBlock<T> const& block, std::int64_t at, std::int32_t const* ahead) {
    using V = Vector<T>;
    constexpr std::size_t kWidth = kLanes<T> * NV;
    T const* row[R];
    typename V::Type sum[R][NV];
    TH_UNROLL for (int r = 0; r < R; ++r) {
        row[r] = block.features +
                 static_cast<std::size_t>(block.pairs.in[at + r]) * block.feature_stride;
        TH_UNROLL for (int v = 0; v < NV; ++v) sum[r][v] = V::zero();
    }
    auto const step = [&](std::size_t c) TH_INLINED {
        typename V::Type weight[NV];
        TH_UNROLL for (int v = 0; v < NV; ++v) {
            weight[v] =
                V::load(block.weights + c * kWidth + static_cast<std::size_t>(v) * kLanes<T>);
        }
        TH_UNROLL for (int r = 0; r < R; ++r) {
            typename V::Type const x = V::all(row[r][c]);
            TH_UNROLL for (int v = 0; v < NV; ++v) {
                sum[r][v] = V::multiply_add(x, weight[v], sum[r][v]);
            }
        }
    };
    std::size_t c = 0;
    for (; c + kLine<T> <= block.channels; c += kLine<T>) {
        if (ahead != nullptr) {
            TH_UNROLL for (int r = 0; r < R; ++r) {
                __builtin_prefetch(block.features +
                                   static_cast<std::size_t>(ahead[r]) * block.feature_stride + c);
            }
        }
        for (std::size_t d = c; d < c + kLine<T>; d += 2) {
            step(d);
            step(d + 1);
        }
    }
    for (; c < block.channels; ++c) step(c);
    // One row after the other: several pairs may have the same out row.
    TH_UNROLL for (int r = 0; r < R; ++r) {
        T* const to =
            block.out +
            static_cast<std::size_t>(block.pairs.out[at + r] - block.first_row) * block.out_stride;
        TH_UNROLL for (int v = 0; v < NV; ++v) {
            T* const p = to + static_cast<std::size_t>(v) * kLanes<T>;
            V::store(p, V::add(V::load(p), sum[r][v]));
        }
    }
}

/// The last pairs of a run, fewer than a block has.
template <class T, int R, int NV>
void add_rest(ColumnBlock<T> const& block, std::int64_t at, std::int64_t end) {
    if constexpr (R > 4) {
        for (; at + 4 <= end; at += 4) add_pairs<T, 4, NV>(block, at, nullptr);
    }
    for (; at + 2 <= end; at += 2) add_pairs<T, 2, NV>(block, at, nullptr);
    if (at < end) add_pairs<T, 1, NV>(block, at, nullptr);
}

/// All pairs of a run. `next`: where the run of the next offset begins; the rows of its first pairs
/// are prefetched towards the end of this one.
template <class T, int NV>
void add_run(ColumnBlock<T> const& block, Run run, std::int64_t next) {
    constexpr int kRows = rows_of_block(NV);
    std::int64_t const far = block.channels <= 2 * kLine<T> ? 2 * kRows : kRows;
    std::int64_t at = run.begin;
    for (; at + kRows <= run.end; at += kRows) {
        std::int32_t const* ahead = nullptr;
        if (block.fetches) {
            std::int64_t const later = at + far < run.end ? at + far : next + (at + far - run.end);
            if (later + kRows <= block.pairs.count) ahead = block.pairs.in + later;
        }
        add_pairs<T, kRows, NV>(block, at, ahead);
    }
    add_rest<T, kRows, NV>(block, at, run.end);
}

template <class T, int NV = kMostVectors>
void add_columns(std::size_t vectors, ColumnBlock<T> const& block, Run run, std::int64_t next) {
    if constexpr (NV > 1) {
        if (vectors != static_cast<std::size_t>(NV)) {
            return add_columns<T, NV - 1>(vectors, block, run, next);
        }
    }
    add_run<T, NV>(block, run, next);
}

/// One group of channels under one offset. `weights`: those of the group and offset.
template <class T>
void add_group(Tile<T> const& tile, std::size_t group, T const* weights, Run run,
               std::int64_t next) {
    Channels const& size = tile.channels;
    for (std::size_t c = 0; c < size.in; c += kChainChannels) {
        std::size_t const channels = std::min(kChainChannels, size.in - c);
        for (std::size_t b = 0; b < size.out; b += kBlockColumns<T>) {
            std::size_t const columns = padded(std::min(kBlockColumns<T>, size.out - b), kLanes<T>);
            ColumnBlock<T> const block{
                .pairs = tile.pairs,
                .features = tile.features + group * size.in + c,
                .feature_stride = size.groups * size.in,
                .channels = channels,
                .weights = weights + b * size.in + c * columns,
                .out = tile.out + group * tile.group_stride + b,
                .out_stride = tile.out_stride,
                .first_row = tile.first_row,
                .fetches = b == 0,
            };
            add_columns<T>(columns / kLanes<T>, block, run, next);
        }
    }
}

template <class T>
void add_tile(Tile<T> const& tile) {
    Channels const& size = tile.channels;
    std::size_t const of_group = size.in * padded(size.out, kLanes<T>);
    for (std::size_t k = 0; k < tile.offsets; ++k) {
        Run const run = tile.runs[k];
        if (run.begin == run.end) continue;
        std::int64_t const next = tile.runs[k + 1 < tile.offsets ? k + 1 : 0].begin;
        for (std::size_t g = 0; g < size.groups; ++g) {
            add_group(tile, g, tile.weights + (k * size.groups + g) * of_group, run, next);
        }
    }
}

}  // namespace TH_STEP_NAMESPACE
}  // namespace tensorhash::conv
