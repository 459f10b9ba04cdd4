// Sorts each group in one pass: every row has its own place, so no pairs are compared.
#include "coords/kernel_map/finish_groups.hpp"

#include <algorithm>
#include <optional>

#include "runtime/parallel.hpp"
#include "runtime/scan.hpp"
#include "tensorhash/threads.hpp"

namespace tensorhash::coords {
namespace {

/// Sorts groups by row, and fills the mirrored half of a symmetric map.
class GroupFinisher {
public:
    GroupFinisher(KernelMapPairs& pairs, std::size_t out_rows, bool in_order)
        : offsets_(pairs.offsets.as<std::int64_t>()),
          in_(pairs.in_maps.as_mutable<std::int32_t>().data()),
          out_(pairs.out_maps.as_mutable<std::int32_t>().data()), out_rows_(out_rows),
          in_order_(in_order) {}

    void run(Swept swept) {
        if (swept.mirror) fill_identity(swept.groups);
        if (in_order_ && !swept.mirror) return;
        auto const threads = static_cast<std::size_t>(num_threads());
        bool const small = offsets_.back() < std::int64_t{kSerialWork};
        std::size_t const tasks = small ? 1 : std::min(swept.groups, threads * 4);
        runtime::run_tasks(tasks, [&](std::size_t task) {
            std::optional<PairSorter> order;
            if (!in_order_) order.emplace(out_rows_);
            for (std::size_t k = task; k < swept.groups; k += tasks) {
                if (swept.mirror) exchange(k, 2 * swept.groups - k, order);
                if (!in_order_) reorder(k, *order);
            }
        });
    }

private:
    void fill_identity(std::size_t group) {
        std::int64_t const begin = offsets_[group];
        runtime::for_ranges(out_rows_, runtime::kGrain, [&](std::size_t from, std::size_t to) {
            for (std::size_t row = from; row < to; ++row) {
                in_[begin + static_cast<std::int64_t>(row)] = static_cast<std::int32_t>(row);
                out_[begin + static_cast<std::int64_t>(row)] = static_cast<std::int32_t>(row);
            }
        });
    }

    void exchange(std::size_t from, std::size_t to, std::optional<PairSorter>& order) {
        std::int64_t const count = offsets_[from + 1] - offsets_[from];
        // The mirrored group must ascend by in row. In rows need not ascend where out rows do: a
        // shift can change the order of rows that are sorted by block.
        if (in_order_ && std::is_sorted(in_ + offsets_[from], in_ + offsets_[from + 1])) {
            std::copy_n(in_ + offsets_[from], count, out_ + offsets_[to]);
            std::copy_n(out_ + offsets_[from], count, in_ + offsets_[to]);
            return;
        }
        if (!order) order.emplace(out_rows_);
        for (std::int64_t at = offsets_[from]; at < offsets_[from + 1]; ++at) {
            order->add(in_[at], out_[at]);
        }
        order->flush(out_ + offsets_[to], in_ + offsets_[to]);
    }

    void reorder(std::size_t group, PairSorter& order) {
        for (std::int64_t at = offsets_[group]; at < offsets_[group + 1]; ++at) {
            order.add(out_[at], in_[at]);
        }
        order.flush(out_ + offsets_[group], in_ + offsets_[group]);
    }

    std::span<std::int64_t const> offsets_;
    std::int32_t* in_;
    std::int32_t* out_;
    std::size_t out_rows_;
    bool in_order_;
};

}  // namespace

KernelMapPairs allocate_pairs(KernelMapRequest const& request, Swept swept,
                              std::vector<std::int64_t> const& totals) {
    KernelMapPairs pairs;
    pairs.offsets = Tensor::zeros({static_cast<std::int64_t>(request.groups) + 1}, Dtype::Int64);
    auto const offsets = pairs.offsets.as_mutable<std::int64_t>();
    auto const rows = static_cast<std::int64_t>(request.out.rows);
    for (std::size_t k = 0; k < request.groups; ++k) {
        std::int64_t const own = k < swept.groups    ? totals[k]
                                 : k == swept.groups ? rows
                                                     : totals[2 * swept.groups - k];
        offsets[k] = own;
    }
    runtime::scan(offsets);
    pairs.in_maps = Tensor::empty({offsets.back()}, Dtype::Int32);
    pairs.out_maps = Tensor::empty({offsets.back()}, Dtype::Int32);
    return pairs;
}

void sort_slab(KernelMapPairs& pairs, PairSlab const& slab) {
    auto* const in = pairs.in_maps.as_mutable<std::int32_t>().data();
    auto* const out = pairs.out_maps.as_mutable<std::int32_t>().data();
    std::size_t const groups = slab.counts.size();
    std::size_t const tasks = std::min(groups, static_cast<std::size_t>(num_threads()) * 4);
    runtime::run_tasks(tasks, [&](std::size_t task) {
        PairSorter order(slab.rows, slab.first_row);
        for (std::size_t k = task; k < groups; k += tasks) {
            std::int64_t const begin = slab.begins[k];
            for (std::int64_t at = begin; at < begin + slab.counts[k]; ++at) {
                order.add(out[at], in[at]);
            }
            order.flush(out + begin, in + begin);
        }
    });
}

void finish_groups(KernelMapPairs& pairs, std::size_t out_rows, Swept swept, bool in_order) {
    GroupFinisher(pairs, out_rows, in_order).run(swept);
}

}  // namespace tensorhash::coords
