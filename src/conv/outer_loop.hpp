// Sums of outer products for the gradient of a weight: blocks of M channels by NV vectors of
// columns stay in registers over a chunk of pairs, then they are added to the sums.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "conv/loops.hpp"
#include "conv/vectors.hpp"
#include "runtime/inlined.hpp"

namespace tensorhash::conv {
inline namespace TH_STEP_NAMESPACE {

/// Rows of one side of the pairs: by row number, or packed one after the other if `number` is null.
template <class T>
struct Side {
    T const* data;
    std::int32_t const* number;
    std::size_t stride;
};

/// Adds the products of `count` pairs to a block of sums. Direct: sides have row numbers. `ahead`:
/// how many pairs ahead both rows are prefetched, or 0.
template <class T, int M, int NV, bool Direct>
void add_products(Side<T> const& left, Side<T> const& right, std::int64_t count, std::int64_t ahead,
                  T* sums, std::size_t stride) {
    using V = Vector<T>;
    typename V::Type sum[M][NV];
    TH_UNROLL for (int m = 0; m < M; ++m) {
        TH_UNROLL for (int v = 0; v < NV; ++v) sum[m][v] = V::zero();
    }
    auto const row = [](Side<T> const& side, std::int64_t p) TH_INLINED {
        return side.data + static_cast<std::size_t>(Direct ? side.number[p] : p) * side.stride;
    };
    for (std::int64_t p = 0; p < count; ++p) {
        if (Direct && ahead != 0) {
            for (std::size_t c = 0; c < left.stride; c += kLine<T>) {
                __builtin_prefetch(row(left, p + ahead) + c);
            }
            for (std::size_t c = 0; c < right.stride; c += kLine<T>) {
                __builtin_prefetch(row(right, p + ahead) + c);
            }
        }
        T const* const x = row(left, p);
        T const* const y = row(right, p);
        typename V::Type column[NV];
        TH_UNROLL for (int v = 0; v < NV; ++v) {
            column[v] = V::load(y + static_cast<std::size_t>(v) * kLanes<T>);
        }
        TH_UNROLL for (int m = 0; m < M; ++m) {
            typename V::Type const channel = V::all(x[m]);
            TH_UNROLL for (int v = 0; v < NV; ++v) {
                sum[m][v] = V::multiply_add(channel, column[v], sum[m][v]);
            }
        }
    }
    TH_UNROLL for (int m = 0; m < M; ++m) {
        TH_UNROLL for (int v = 0; v < NV; ++v) {
            T* const p = sums + static_cast<std::size_t>(m) * stride +
                         static_cast<std::size_t>(v) * kLanes<T>;
            V::store(p, V::add(V::load(p), sum[m][v]));
        }
    }
}

template <class T>
std::size_t outer_rows(std::size_t out) {
    return static_cast<std::size_t>(out <= kLanes<T> ? kNarrowOuterRows : kOuterRows);
}

/// Copies the rows of a chunk, padded with zeros: they are read once per block from then on.
template <class T>
void pack_rows(T const* from, std::size_t from_stride, std::int32_t const* rows, std::int64_t count,
               std::size_t columns, std::size_t wide, T* to) {
    for (std::int64_t p = 0; p < count; ++p, to += wide) {
        T const* const row = from + static_cast<std::size_t>(rows[p]) * from_stride;
        std::memcpy(to, row, columns * sizeof(T));
        std::fill(to + columns, to + wide, T{0});
    }
}

template <class T>
void prefetch_row(T const* row, std::size_t columns) {
    for (std::size_t c = 0; c < columns; c += kLine<T>) __builtin_prefetch(row + c, 0, 2);
    TH_KEEP_PREFETCH();
}

/// Prefetches the rows of the next chunk, a few per block of the current one.
template <class T>
class ChunkPrefetch {
public:
    ChunkPrefetch(Outer<T> const& work, Run next, std::size_t blocks)
        : work_(work), at_(next.begin), end_(next.end), share_(kChunkPairs / to_int(blocks) + 1) {}
    void advance() {
        for (std::int64_t const stop = std::min(at_ + share_, end_); at_ < stop; ++at_) {
            prefetch_row(work_.features + row(work_.pairs.in) * work_.feature_stride, work_.in);
            prefetch_row(work_.gradient + row(work_.pairs.out) * work_.gradient_stride, work_.out);
        }
    }

private:
    static std::int64_t to_int(std::size_t n) { return static_cast<std::int64_t>(n); }
    std::size_t row(std::int32_t const* rows) const { return static_cast<std::size_t>(rows[at_]); }

    Outer<T> const& work_;
    std::int64_t at_;
    std::int64_t end_;
    std::int64_t share_;
};

/// All blocks of a chunk. `wide`: padded columns.
template <class T, bool Direct>
void add_chunk(Outer<T> const& work, Side<T> left, Side<T> right, std::size_t high,
               std::size_t wide, Run run, Run next) {
    auto const rows = outer_rows<T>(work.out);
    std::size_t const step = 2 * kLanes<T>;
    ChunkPrefetch<T> fetch(work, next, high / rows * ((wide + step - 1) / step));
    std::int64_t const count = run.end - run.begin;
    for (std::size_t c = 0; c < wide; c += step) {
        Side<T> const columns{right.data + c, right.number, right.stride};
        for (std::size_t r = 0; r < high; r += rows) {
            Side<T> const channels{left.data + r, left.number, left.stride};
            T* const sums = work.sums + r * wide + c;
            bool const first = r + c == 0;
            std::int64_t const ahead =
                Direct && first && run.end + 16 <= work.pairs.count ? std::int64_t{16} : 0;
            if constexpr (!Direct) fetch.advance();
            if (wide == kLanes<T>) {
                add_products<T, kNarrowOuterRows, 1, Direct>(channels, columns, count, ahead, sums,
                                                             wide);
            } else if (c + kLanes<T> == wide) {
                add_products<T, kOuterRows, 1, Direct>(channels, columns, count, ahead, sums, wide);
            } else {
                add_products<T, kOuterRows, 2, Direct>(channels, columns, count, ahead, sums, wide);
            }
        }
    }
}

/// Short rows are read where they lie; longer ones are packed first. Both give the same bits.
template <class T>
bool is_direct(Outer<T> const& work) {
    constexpr std::size_t kMost = 32;
    constexpr std::size_t kWhole = 16;  // a multiple of every loop's rows and lanes
    return work.in <= kMost && work.out <= kMost && work.in % kWhole == 0 &&
           work.out % kWhole == 0 && work.feature_stride == work.in;
}

template <class T>
void add_outer(Outer<T> const& work) {
    std::size_t const high = padded(work.in, outer_rows<T>(work.out));
    std::size_t const wide = padded(work.out, kLanes<T>);
    T* const left = work.panel;
    T* const right = work.panel + static_cast<std::size_t>(kChunkPairs) * high;
    bool const direct = is_direct(work);
    for (std::int64_t at = work.run.begin; at < work.run.end; at += kChunkPairs) {
        Run const run{at, std::min(at + kChunkPairs, work.run.end)};
        Run const next{run.end, std::min(run.end + kChunkPairs, work.run.end)};
        std::int32_t const* const in = work.pairs.in + at;
        std::int32_t const* const out = work.pairs.out + at;
        if (direct) {
            add_chunk<T, true>(work, {work.features, in, work.feature_stride},
                               {work.gradient, out, work.gradient_stride}, high, wide, run, next);
            continue;
        }
        std::int64_t const count = run.end - run.begin;
        pack_rows(work.features, work.feature_stride, in, count, work.in, high, left);
        pack_rows(work.gradient, work.gradient_stride, out, count, work.out, wide, right);
        add_chunk<T, false>(work, {left, nullptr, high}, {right, nullptr, wide}, high, wide, run,
                            next);
    }
}

}  // namespace TH_STEP_NAMESPACE
}  // namespace tensorhash::conv
