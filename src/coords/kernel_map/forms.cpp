// Other forms of a kernel map: exchanged, as a table, as a mask, by out row. The maps may have been in a user's hands
// since they were made, so they are checked before anything is indexed by them.
#include <algorithm>
#include <atomic>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "coords/kernel_map/row_order.hpp"
#include "runtime/parallel.hpp"
#include "tensorhash/coords/kernel_map.hpp"
#include "tensorhash/error.hpp"
#include "tensorhash/threads.hpp"

namespace tensorhash::coords {
namespace {

constexpr std::size_t kRowGrain = 1024;  // rows carry a pair per offset

/// A map that passed: every number in range, every group ascending by out row.
struct Checked {
    Tensor in_tensor;
    Tensor out_tensor;
    std::span<std::int32_t const> in;
    std::span<std::int32_t const> out;
    std::vector<std::int64_t> offsets;  // a copy: they lead to everything else
    std::size_t groups() const { return offsets.size() - 1; }
};

[[noreturn]] void fail_map(std::string const& what) {
    throw ValueError(what + "; this map was written to after it was made");
}

void check_pairs(Checked const& map, std::int64_t num_in, std::int64_t num_out) {
    std::atomic<bool> good{true};
    runtime::run_tasks(map.groups(), [&](std::size_t k) {
        bool own = true;
        std::int32_t before = 0;
        for (auto at = static_cast<std::size_t>(map.offsets[k]);
             at < static_cast<std::size_t>(map.offsets[k + 1]); ++at) {
            own = own && map.in[at] >= 0 && map.in[at] < num_in && map.out[at] >= before &&
                  map.out[at] < num_out;
            before = std::max(before, map.out[at]);
        }
        if (!own) good.store(false, std::memory_order_relaxed);
    });
    if (!good.load(std::memory_order_relaxed)) {
        fail_map("in_maps, out_maps: expected row numbers from 0 on, below " +
                 std::to_string(num_in) + " and " + std::to_string(num_out) +
                 ", out rows ascending in every group");
    }
}

Checked check_map(KernelMap const& map) {
    Checked checked{map.in_maps.contiguous(), map.out_maps.contiguous(), {}, {}, {}};
    checked.in = checked.in_tensor.as<std::int32_t>();
    checked.out = checked.out_tensor.as<std::int32_t>();
    auto const bounds = map.offsets.as<std::int64_t>();
    std::vector<std::int64_t>& offsets = checked.offsets;
    offsets.assign(bounds.begin(), bounds.end());
    if (checked.in.size() != checked.out.size()) {
        fail_map("in_maps, out_maps: expected as many of both, got " +
                 std::to_string(checked.in.size()) + " and " + std::to_string(checked.out.size()));
    }
    if (offsets.empty() || offsets[0] != 0 || !std::is_sorted(offsets.begin(), offsets.end()) ||
        offsets.back() != static_cast<std::int64_t>(checked.in.size())) {
        fail_map("offsets: expected 0, ascending, up to the number of pairs, " +
                 std::to_string(checked.in.size()));
    }
    check_pairs(checked, map.num_in, map.num_out);
    return checked;
}

/// Calls body(k, at) for the pairs of out rows [begin, end), by offset.
template <class Body>
void for_pairs_of_rows(Checked const& map, std::size_t begin, std::size_t end, Body body) {
    for (std::size_t k = 0; k < map.groups(); ++k) {
        std::int32_t const* const first = map.out.data() + map.offsets[k];
        std::int32_t const* const last = map.out.data() + map.offsets[k + 1];
        std::int32_t const* at = std::lower_bound(first, last, static_cast<std::int32_t>(begin));
        for (; at != last && static_cast<std::size_t>(*at) < end; ++at) {
            body(k, static_cast<std::size_t>(at - map.out.data()));
        }
    }
}

/// One group exchanged; several pairs may come to share an out row, which RowOrder cannot hold.
void exchange_group(Checked const& map, std::size_t k, RowOrder& order, std::int32_t* in,
                    std::int32_t* out) {
    auto const begin = static_cast<std::size_t>(map.offsets[k]);
    auto const end = static_cast<std::size_t>(map.offsets[k + 1]);
    bool shared = false;
    for (std::size_t at = begin; at < end; ++at) {
        shared = !order.add(map.in[at], map.out[at]) || shared;
    }
    order.flush(out + begin, in + begin);
    if (!shared) return;
    std::vector<std::size_t> place(end - begin);
    std::iota(place.begin(), place.end(), begin);
    std::sort(place.begin(), place.end(), [&](std::size_t a, std::size_t b) {
        return map.in[a] != map.in[b] ? map.in[a] < map.in[b] : a < b;
    });
    for (std::size_t i = 0; i < place.size(); ++i) {
        out[begin + i] = map.in[place[i]];
        in[begin + i] = map.out[place[i]];
    }
}

}  // namespace

KernelMap transpose(KernelMap const& map) {
    Checked const checked = check_map(map);
    KernelMap turned = map;
    turned.offsets = map.offsets.clone();
    turned.num_in = map.num_out;
    turned.num_out = map.num_in;
    turned.in_maps = Tensor::empty(map.in_maps.shape(), Dtype::Int32);
    turned.out_maps = Tensor::empty(map.out_maps.shape(), Dtype::Int32);
    auto* const in = turned.in_maps.as_mutable<std::int32_t>().data();
    auto* const out = turned.out_maps.as_mutable<std::int32_t>().data();
    std::size_t const tasks =
        std::min(checked.groups(), static_cast<std::size_t>(num_threads()) * 4);
    runtime::run_tasks(tasks, [&](std::size_t task) {
        RowOrder order(static_cast<std::size_t>(map.num_in));
        for (std::size_t k = task; k < checked.groups(); k += tasks) {
            exchange_group(checked, k, order, in, out);
        }
    });
    return turned;
}

Tensor pair_table(KernelMap const& map) {
    Checked const checked = check_map(map);
    auto const rows = static_cast<std::size_t>(map.num_out);
    Tensor table =
        Tensor::empty({static_cast<std::int64_t>(checked.groups()), map.num_out}, Dtype::Int32);
    auto const cells = table.as_mutable<std::int32_t>();
    std::atomic<bool> shared{false};
    runtime::run_tasks(checked.groups(), [&](std::size_t k) {
        std::int32_t* const row = cells.data() + k * rows;
        std::fill_n(row, rows, -1);
        for (auto at = static_cast<std::size_t>(checked.offsets[k]);
             at < static_cast<std::size_t>(checked.offsets[k + 1]); ++at) {
            std::int32_t& cell = row[checked.out[at]];
            if (cell != -1) shared.store(true, std::memory_order_relaxed);
            cell = checked.in[at];
        }
    });
    if (shared.load(std::memory_order_relaxed)) {
        throw ValueError(
            "pair_table: an out row has several in rows under one offset, which a table cannot "
            "show; use in_maps and out_maps");
    }
    return table;
}

Tensor pair_mask(KernelMap const& map) {
    Checked const checked = check_map(map);
    std::size_t const words = (checked.groups() + 31) / 32;
    Tensor mask = Tensor::zeros({map.num_out, static_cast<std::int64_t>(words)}, Dtype::Int32);
    auto* const bits = static_cast<std::uint32_t*>(mask.data());
    runtime::for_ranges(
        static_cast<std::size_t>(map.num_out), kRowGrain, [&](std::size_t begin, std::size_t end) {
            for_pairs_of_rows(checked, begin, end, [&](std::size_t k, std::size_t at) {
                bits[static_cast<std::size_t>(checked.out[at]) * words + k / 32] |= std::uint32_t{1}
                                                                                    << (k % 32);
            });
        });
    return mask;
}

KernelMapCsr to_csr(KernelMap const& map) {
    Checked const checked = check_map(map);
    auto const rows = static_cast<std::size_t>(map.num_out);
    std::vector<std::int64_t> next(rows + 1, 0);  // where each row's next pair goes
    runtime::for_ranges(rows, kRowGrain, [&](std::size_t begin, std::size_t end) {
        for_pairs_of_rows(checked, begin, end, [&](std::size_t, std::size_t at) {
            ++next[static_cast<std::size_t>(checked.out[at])];
        });
    });
    std::int64_t sum = 0;
    std::vector<std::int32_t> out_rows;
    std::vector<std::int64_t> offsets;
    for (std::size_t row = 0; row < rows; ++row) {
        if (next[row] > 0) {
            out_rows.push_back(static_cast<std::int32_t>(row));
            offsets.push_back(sum);
        }
        sum += std::exchange(next[row], sum);
    }
    offsets.push_back(sum);
    Tensor in_maps = Tensor::empty({sum}, Dtype::Int32);
    auto const in = in_maps.as_mutable<std::int32_t>();
    runtime::for_ranges(rows, kRowGrain, [&](std::size_t begin, std::size_t end) {
        for_pairs_of_rows(checked, begin, end, [&](std::size_t, std::size_t at) {
            auto const row = static_cast<std::size_t>(checked.out[at]);
            in[static_cast<std::size_t>(next[row]++)] = checked.in[at];
        });
    });
    return {in_maps, Tensor::from(out_rows, {static_cast<std::int64_t>(out_rows.size())}),
            Tensor::from(offsets, {static_cast<std::int64_t>(offsets.size())})};
}

}  // namespace tensorhash::coords
