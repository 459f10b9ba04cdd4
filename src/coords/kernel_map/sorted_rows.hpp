// Rows in the order of their grid keys.
#pragma once

#include "coords/kernel_map/grid_keys.hpp"
#include "coords/rows/sort.hpp"
#include "runtime/memory.hpp"
#include "runtime/parallel.hpp"
#include "runtime/scan.hpp"

namespace tensorhash::coords {

/// keys[i] is the key of row rows[i]. The keys ascend; equal keys are sorted by row. One more key,
/// above all others, ends the list.
template <std::size_t W> struct SortedRows {
    std::size_t size = 0;
    runtime::Block key_block{};
    runtime::Block row_block{};

    explicit SortedRows(std::size_t count)
        : size(count), key_block((count + 1) * sizeof(GridKey<W>)),
          row_block(count * sizeof(std::uint32_t)) {
        keys()[count] = GridKey<W>::above_all();
    }
    GridKey<W>* keys() noexcept { return reinterpret_cast<GridKey<W>*>(key_block.data()); }
    GridKey<W> const* keys() const noexcept {
        return reinterpret_cast<GridKey<W> const*>(key_block.data());
    }
    std::uint32_t* rows() noexcept { return reinterpret_cast<std::uint32_t*>(row_block.data()); }
    std::uint32_t const* rows() const noexcept {
        return reinterpret_cast<std::uint32_t const*>(row_block.data());
    }
    bool in_row_order() const { return std::is_sorted(rows(), rows() + size); }
};

/// Fills in the keys and sorts the list. The caller has filled in the rows, ascending. word(row, w)
/// is word w of a row's key.
template <std::size_t W, class Word>
void sort_by_key(SortedRows<W>& list, Grid const& grid, Word word) {
    std::uint32_t* const rows = list.rows();
    if constexpr (W == 1) {
        static_assert(sizeof(GridKey<1>) == sizeof(std::uint64_t));
        auto* const keys = reinterpret_cast<std::uint64_t*>(list.key_block.data());
        runtime::for_ranges(list.size, runtime::kGrain, [&](std::size_t begin, std::size_t end) {
            for (std::size_t i = begin; i < end; ++i) keys[i] = word(rows[i], std::size_t{0});
        });
        sort_rows(keys, rows, list.size, grid.largest[0]);
    } else {
        runtime::Block block(list.size * sizeof(std::uint64_t));
        auto* const keys = reinterpret_cast<std::uint64_t*>(block.data());
        for (std::size_t w = grid.words; w-- > 0;) {  // stable: equal words keep the order so far
            runtime::for_ranges(list.size, runtime::kGrain,
                                [&](std::size_t begin, std::size_t end) {
                                    for (std::size_t i = begin; i < end; ++i)
                                        keys[i] = word(rows[i], w);
                                });
            sort_rows(keys, rows, list.size, grid.largest[w]);
        }
        runtime::for_ranges(list.size, runtime::kGrain, [&](std::size_t begin, std::size_t end) {
            for (std::size_t i = begin; i < end; ++i) {
                GridKey<W> key;
                for (std::size_t w = 0; w < grid.words; ++w) {
                    key.words[w + W - grid.words] = word(rows[i], w);
                }
                list.keys()[i] = key;
            }
        });
    }
}

/// All in rows, sorted.
template <std::size_t W> SortedRows<W> sort_in_rows(KernelMapRequest const& request,
                                                    Grid const& grid) {
    SortedRows<W> list(request.in.rows);
    for (std::size_t i = 0; i < list.size; ++i) list.rows()[i] = static_cast<std::uint32_t>(i);
    sort_by_key(list, grid, [&](std::uint32_t row, std::size_t w) {
        return grid.in_word(row_of(request.in, row), w);
    });
    return list;
}

/// The out rows that can meet an in row, sorted by the first corner of their kernels.
template <std::size_t W> SortedRows<W> sort_out_rows(KernelMapRequest const& request,
                                                     Grid const& grid) {
    CoordRows const& out = request.out;
    SortedRows<W> list(0);
    runtime::select(
        runtime::cut(out.rows, runtime::kGrain),
        [&](std::size_t begin, std::size_t end) {
            std::size_t kept = 0;
            for (std::size_t i = begin; i < end; ++i) kept += !grid.out_of_reach(row_of(out, i));
            return kept;
        },
        [&](std::size_t total) { list = SortedRows<W>(total); },
        [&](std::size_t begin, std::size_t end, std::size_t place) {
            std::uint32_t* next = list.rows() + place;
            for (std::size_t i = begin; i < end; ++i) {
                if (!grid.out_of_reach(row_of(out, i))) *next++ = static_cast<std::uint32_t>(i);
            }
        });
    sort_by_key(list, grid, [&](std::uint32_t row, std::size_t w) {
        return grid.out_word(row_of(out, row), w);
    });
    return list;
}

}  // namespace tensorhash::coords
