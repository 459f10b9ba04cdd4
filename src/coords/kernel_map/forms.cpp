// Other forms of a kernel map: transposed, as a table, as a mask, by out row. The caller may have
// written to the map, so its numbers are checked before they are used as indices.
#include "coords/kernel_map/forms.hpp"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <string>
#include <vector>

#include "coords/kernel_map/pair_sorter.hpp"
#include "runtime/parallel.hpp"
#include "runtime/scan.hpp"
#include "tensorhash/error.hpp"
#include "tensorhash/threads.hpp"

namespace tensorhash::coords {

void fail_map(std::string const& what) {
    throw ValueError(what + "; this map was written to after it was made");
}

namespace {

constexpr std::size_t kRowGrain = 1024;  // a row has up to one pair per offset

void check_pairs(CheckedMap const& map) {
    std::atomic<bool> good{true};
    runtime::run_tasks(map.groups(), [&](std::size_t k) {
        bool own = true;
        std::int32_t before = 0;
        for (auto at = static_cast<std::size_t>(map.offsets[k]);
             at < static_cast<std::size_t>(map.offsets[k + 1]); ++at) {
            own = own && map.in[at] >= 0 && map.in[at] < map.num_in && map.out[at] >= before &&
                  map.out[at] < map.num_out;
            before = std::max(before, map.out[at]);
        }
        if (!own) good.store(false, std::memory_order_relaxed);
    });
    if (!good.load(std::memory_order_relaxed)) {
        fail_map("in_maps, out_maps: expected row numbers from 0 on, below " +
                 std::to_string(map.num_in) + " and " + std::to_string(map.num_out) +
                 ", out rows ascending in every group");
    }
}

/// Calls body(k, at) for the pairs of out rows [begin, end), by offset.
template <class Body>
void for_pairs_of_rows(CheckedMap const& map, std::size_t begin, std::size_t end, Body body) {
    for (std::size_t k = 0; k < map.groups(); ++k) {
        std::int32_t const* const first = map.out.data() + map.offsets[k];
        std::int32_t const* const last = map.out.data() + map.offsets[k + 1];
        std::int32_t const* at = std::lower_bound(first, last, static_cast<std::int32_t>(begin));
        for (; at != last && static_cast<std::size_t>(*at) < end; ++at) {
            body(k, static_cast<std::size_t>(at - map.out.data()));
        }
    }
}

/// Transposes one group. Pairs may then share an out row, which PairSorter cannot hold.
void exchange_group(CheckedMap const& map, std::size_t k, PairSorter& sorter, std::int32_t* in,
                    std::int32_t* out) {
    auto const begin = static_cast<std::size_t>(map.offsets[k]);
    auto const end = static_cast<std::size_t>(map.offsets[k + 1]);
    bool shared = false;
    for (std::size_t at = begin; at < end; ++at) {
        shared = !sorter.add(map.in[at], map.out[at]) || shared;
    }
    sorter.flush(out + begin, in + begin);
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

CheckedMap check_map(KernelMap const& map) {
    CheckedMap checked{
        map.in_maps.contiguous(), map.out_maps.contiguous(), {}, {}, {}, map.num_in, map.num_out};
    checked.in = checked.in_tensor.as<std::int32_t>();
    checked.out = checked.out_tensor.as<std::int32_t>();
    auto const bounds = map.offsets.as<std::int64_t>();
    std::vector<std::int64_t>& offsets = checked.offsets;
    offsets.assign(bounds.begin(), bounds.end());
    if (checked.in.size() != checked.out.size()) {
        fail_map("in_maps, out_maps: expected equal lengths, got " +
                 std::to_string(checked.in.size()) + " and " + std::to_string(checked.out.size()));
    }
    if (offsets.empty() || offsets[0] != 0 || !std::is_sorted(offsets.begin(), offsets.end()) ||
        offsets.back() != static_cast<std::int64_t>(checked.in.size())) {
        fail_map("offsets: expected ascending numbers from 0 to the number of pairs, " +
                 std::to_string(checked.in.size()));
    }
    check_pairs(checked);
    return checked;
}

void exchange_groups(CheckedMap const& map, std::int32_t* in_maps, std::int32_t* out_maps) {
    std::size_t const tasks = std::min(map.groups(), static_cast<std::size_t>(num_threads()) * 4);
    runtime::run_tasks(tasks, [&](std::size_t task) {
        PairSorter sorter(static_cast<std::size_t>(map.num_in));
        for (std::size_t k = task; k < map.groups(); k += tasks) {
            exchange_group(map, k, sorter, in_maps, out_maps);
        }
    });
}

bool fill_pair_table(CheckedMap const& map, std::int32_t* table) {
    auto const rows = static_cast<std::size_t>(map.num_out);
    std::atomic<bool> unique{true};
    runtime::run_tasks(map.groups(), [&](std::size_t k) {
        std::int32_t* const row = table + k * rows;
        std::fill_n(row, rows, -1);
        for (auto at = static_cast<std::size_t>(map.offsets[k]);
             at < static_cast<std::size_t>(map.offsets[k + 1]); ++at) {
            std::int32_t& cell = row[map.out[at]];
            if (cell != -1) unique.store(false, std::memory_order_relaxed);
            cell = map.in[at];
        }
    });
    return unique.load(std::memory_order_relaxed);
}

void fill_pair_mask(CheckedMap const& map, std::size_t words, std::uint32_t* bits) {
    runtime::for_ranges(static_cast<std::size_t>(map.num_out), kRowGrain,
                        [&](std::size_t begin, std::size_t end) {
                            for_pairs_of_rows(map, begin, end, [&](std::size_t k, std::size_t at) {
                                bits[static_cast<std::size_t>(map.out[at]) * words + k / 32] |=
                                    std::uint32_t{1} << (k % 32);
                            });
                        });
}

RowPlaces count_pairs_of_rows(CheckedMap const& map) {
    auto const rows = static_cast<std::size_t>(map.num_out);
    RowPlaces places;
    std::vector<std::int64_t>& next = places.next;
    next.resize(rows);
    runtime::for_ranges(rows, kRowGrain, [&](std::size_t begin, std::size_t end) {
        for_pairs_of_rows(map, begin, end, [&](std::size_t, std::size_t at) {
            ++next[static_cast<std::size_t>(map.out[at])];
        });
    });
    for (std::size_t row = 0; row < rows; ++row) {
        if (next[row] == 0) continue;
        places.out_rows.push_back(static_cast<std::int32_t>(row));
        places.offsets.push_back(next[row]);
    }
    places.offsets.push_back(0);
    runtime::scan(places.offsets);
    runtime::scan(next);
    return places;
}

void write_pairs_by_row(CheckedMap const& map, std::vector<std::int64_t>& next, std::int32_t* in) {
    runtime::for_ranges(next.size(), kRowGrain, [&](std::size_t begin, std::size_t end) {
        for_pairs_of_rows(map, begin, end, [&](std::size_t, std::size_t at) {
            auto const row = static_cast<std::size_t>(map.out[at]);
            in[next[row]++] = map.in[at];
        });
    });
}

}  // namespace tensorhash::coords
