// The merge path: sorts both lists once, then makes one sweep per kernel column with a window over
// the last axis. A first pass counts the pairs, a second writes them to their final places.
#include <optional>
#include <span>
#include <vector>

#include "coords/kernel_map/finish_groups.hpp"
#include "coords/kernel_map/sorted_rows.hpp"
#include "runtime/scan.hpp"
#include "tensorhash/threads.hpp"

namespace tensorhash::coords {
namespace {

/// Above this dilation of the last axis, most keys of a window are misses. Then each offset gets
/// its own sweep.
constexpr std::uint64_t kMaxWindowStep = 4;

/// Consecutive offsets that differ only in the last axis.
template <std::size_t W> struct KernelColumn {
    GridKey<W> shift{};  // from an out key to the first offset's in key
    std::size_t first = 0;
    std::size_t count = 0;
};

/// The sorted lists; `out` is absent if the in list serves as both.
template <std::size_t W> struct Lists {
    SortedRows<W> in;
    std::optional<SortedRows<W>> out{};
    bool repeated = false;
    SortedRows<W> const& queries() const { return out ? *out : in; }
};

template <std::size_t W>
std::vector<KernelColumn<W>> columns_of(KernelMapRequest const& request, Grid const& grid,
                                        std::size_t groups, bool out_is_in) {
    auto const length = static_cast<std::size_t>(request.size.back());
    bool const alone = static_cast<std::uint64_t>(request.dilation.back()) > kMaxWindowStep;
    std::vector<KernelColumn<W>> columns;
    for (std::size_t k = 0; k < groups;) {
        GridKey<W> shift = grid.shift<W>(request.offset(k));
        if (out_is_in) {
            shift = shift - grid.corner<W>();
        }
        std::size_t const count = alone ? 1 : std::min(length - k % length, groups - k);
        columns.push_back({shift, k, count});
        k += count;
    }
    return columns;
}

/// The first key from `at` on that is not below `key`. The list ends with a key above all others.
template <std::size_t W>
GridKey<W> const* skip_to(GridKey<W> const* at, GridKey<W> const* end, GridKey<W> const& key) {
    for (int near = 0; near < 8; ++near, ++at) {
        if (!(*at < key)) return at;
    }
    std::ptrdiff_t step = 8;
    while (end - at > step && at[step] < key) {
        at += step;
        step *= 2;
    }
    return std::lower_bound(at, end - at > step ? at + step : end, key);
}

/// Calls body(place in the column, in position, out position) for the pairs of out positions
/// [begin, end).
template <std::size_t W, class Body>
void sweep(SortedRows<W> const& in, SortedRows<W> const& out, KernelColumn<W> const& column,
           std::uint64_t step, std::size_t begin, std::size_t end, Body body) {
    GridKey<W> const* const first = in.keys();
    GridKey<W> const* const last = first + in.size;
    std::uint64_t const reach = step * (column.count - 1);
    GridKey<W> const* low = std::lower_bound(first, last, out.keys()[begin] + column.shift);
    for (std::size_t o = begin; o < end; ++o) {
        GridKey<W> const from = out.keys()[o] + column.shift;
        GridKey<W> to = from;
        to.add_to_last(reach);
        low = skip_to(low, last, from);
        for (GridKey<W> const* at = low; !(to < *at); ++at) {
            std::uint64_t place = at->last_minus(from);
            if (step != 1) {
                if (place % step != 0) continue;
                place /= step;
            }
            body(static_cast<std::size_t>(place), static_cast<std::size_t>(at - first), o);
        }
    }
}

/// The sweeps of all columns, cut into tasks. Each task has some out positions of one column.
template <std::size_t W> class Sweeps {
public:
    Sweeps(KernelMapRequest const& request, Grid const& grid, Lists<W> const& lists,
           std::size_t groups)
        : lists_(lists), columns_(columns_of<W>(request, grid, groups, !lists.out)),
          step_(columns_.empty() || columns_[0].count == 1
                    ? 1
                    : static_cast<std::uint64_t>(request.dilation.back())),
          rows_(lists.queries().size), pieces_(pieces(rows_, columns_.size())),
          next_(groups * pieces_) {}

    /// Counts the pairs of each group, and prepares the places for write().
    std::vector<std::int64_t> count() {
        for_tasks([&](KernelColumn<W> const& column, std::size_t piece, std::size_t begin,
                      std::size_t end) {
            std::vector<std::int64_t> counts(column.count, 0);
            sweep(lists_.in, lists_.queries(), column, step_, begin, end,
                  [&](std::size_t place, std::size_t, std::size_t) { ++counts[place]; });
            for (std::size_t place = 0; place < column.count; ++place) {
                next_[(column.first + place) * pieces_ + piece] = counts[place];
            }
        });
        std::vector<std::int64_t> totals(next_.size() / std::max<std::size_t>(pieces_, 1));
        for (std::size_t group = 0; group < totals.size(); ++group) {
            totals[group] = runtime::scan(std::span(next_).subspan(group * pieces_, pieces_));
        }
        return totals;
    }

    /// Writes group k from offsets[k] on, in the order of the sorted out list.
    void write(std::int64_t const* offsets, std::int32_t* in_maps, std::int32_t* out_maps) {
        std::uint32_t const* const in_rows = lists_.in.rows();
        std::uint32_t const* const out_rows = lists_.queries().rows();
        for_tasks([&](KernelColumn<W> const& column, std::size_t piece, std::size_t begin,
                      std::size_t end) {
            std::vector<std::int64_t> next(column.count);
            for (std::size_t place = 0; place < column.count; ++place) {
                std::size_t const group = column.first + place;
                next[place] = offsets[group] + next_[group * pieces_ + piece];
            }
            sweep(lists_.in, lists_.queries(), column, step_, begin, end,
                  [&](std::size_t place, std::size_t i, std::size_t o) {
                      std::int64_t const at = next[place]++;
                      in_maps[at] = static_cast<std::int32_t>(in_rows[i]);
                      out_maps[at] = static_cast<std::int32_t>(out_rows[o]);
                  });
        });
    }

private:
    /// One task per column, unless the columns are few and long.
    static std::size_t pieces(std::size_t rows, std::size_t columns) {
        if (columns == 0 || rows == 0) return 1;
        std::size_t const wanted = 4 * static_cast<std::size_t>(num_threads()) / columns;
        return std::clamp<std::size_t>(wanted, 1, std::max<std::size_t>(rows / runtime::kGrain, 1));
    }

    template <class Task> void for_tasks(Task task) const {
        auto const run = [&](std::size_t number) {
            std::size_t const piece = number % pieces_;
            std::size_t const begin = rows_ * piece / pieces_;
            std::size_t const end = rows_ * (piece + 1) / pieces_;
            if (begin < end) task(columns_[number / pieces_], piece, begin, end);
        };
        std::size_t const tasks = columns_.size() * pieces_;
        if (rows_ * columns_.size() < kSerialWork) {
            for (std::size_t number = 0; number < tasks; ++number) run(number);
        } else {
            runtime::run_tasks(tasks, run);
        }
    }

    Lists<W> const& lists_;
    std::vector<KernelColumn<W>> columns_;
    std::uint64_t step_;
    std::size_t rows_;
    std::size_t pieces_;
    std::vector<std::int64_t> next_;  // [group, piece]: counts, then places within the group
};

/// Reports the smallest row that repeats another, as every path does.
template <std::size_t W> [[noreturn]] void fail_repeated_in_list(SortedRows<W> const& list) {
    std::size_t run = 0;
    std::uint32_t row = ~std::uint32_t{0};
    std::uint32_t first = 0;
    for (std::size_t i = 1; i < list.size; ++i) {
        if (!(list.keys()[i] == list.keys()[run])) {
            run = i;
        } else if (list.rows()[i] < row) {
            row = list.rows()[i];
            first = list.rows()[run];
        }
    }
    backend::fail_repeated(row, first);
}

template <std::size_t W> SortedRows<W> without_repeats(SortedRows<W> const& list) {
    SortedRows<W> kept(list.size);
    std::size_t size = 0;
    for (std::size_t i = 0; i < list.size; ++i) {
        if (i > 0 && list.keys()[i] == list.keys()[i - 1]) continue;
        kept.keys()[size] = list.keys()[i];
        kept.rows()[size++] = list.rows()[i];
    }
    kept.keys()[size] = GridKey<W>::above_all();
    kept.size = size;
    return kept;
}

template <std::size_t W> Lists<W> sort_lists(KernelMapRequest const& request, Grid const& grid) {
    Lists<W> lists{sort_in_rows<W>(request, grid)};
    GridKey<W> const* const keys = lists.in.keys();
    lists.repeated = std::adjacent_find(keys, keys + lists.in.size) != keys + lists.in.size;
    if (lists.repeated && request.duplicates == Duplicates::Refuse) {
        fail_repeated_in_list(lists.in);
    }
    bool shared = request.equal && request.unstrided;
    for (std::size_t c = 0; c < grid.columns; ++c) {
        shared = shared && grid.column[c].first <= 0 && grid.column[c].last >= 0;
    }
    if (!shared || lists.repeated) {
        lists.out = sort_out_rows<W>(request, grid);
    }
    if (lists.repeated) {
        lists.in = without_repeats(lists.in);
    }
    return lists;
}

template <std::size_t W> KernelMapPairs merge(KernelMapRequest const& request, Grid const& grid) {
    Lists<W> const lists = sort_lists<W>(request, grid);
    Swept const swept(request, lists.repeated);
    Sweeps<W> sweeps(request, grid, lists, swept.groups);
    KernelMapPairs pairs = allocate_pairs(request, swept, sweeps.count());
    pairs.repeated = lists.repeated;
    sweeps.write(pairs.offsets.as<std::int64_t>().data(),
                 pairs.in_maps.as_mutable<std::int32_t>().data(),
                 pairs.out_maps.as_mutable<std::int32_t>().data());
    finish_groups(pairs, request.out.rows, swept, lists.queries().in_row_order());
    return pairs;
}

}  // namespace

KernelMapPairs merge_kernel_map(KernelMapRequest const& request) {
    if (request.in.rows == 0) {
        KernelMapPairs pairs;
        pairs.in_maps = Tensor::empty({0}, Dtype::Int32);
        pairs.out_maps = Tensor::empty({0}, Dtype::Int32);
        pairs.offsets =
            Tensor::zeros({static_cast<std::int64_t>(request.groups) + 1}, Dtype::Int64);
        return pairs;
    }
    Grid const grid(request);
    if (grid.words == 1) return merge<1>(request, grid);
    if (grid.words <= 3) return merge<3>(request, grid);
    return merge<kMaxColumns>(request, grid);
}

}  // namespace tensorhash::coords
