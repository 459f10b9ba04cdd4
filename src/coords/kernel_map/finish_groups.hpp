// The last steps of paths that find pairs in the order of coordinates: place the groups, sort them
// by row, and mirror them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "coords/kernel_map/pair_sorter.hpp"
#include "coords/kernel_map/paths.hpp"

namespace tensorhash::coords {

/// Work (rows times columns, or pairs) below which a second thread costs more than it saves.
inline constexpr std::size_t kSerialWork = std::size_t{1} << 15;

/// The groups that a path finds itself. With `mirror` they are the first half: the middle group is
/// the identity, and group all - 1 - k is group k with in and out exchanged.
struct Swept {
    std::size_t groups = 0;
    bool mirror = false;

    Swept(KernelMapRequest const& request, bool repeated)
        : groups(request.groups),
          mirror(request.mirrored() && !repeated && request.groups == request.all) {
        if (mirror) groups = request.all / 2;
    }
};

/// Allocates the pairs. `totals` are the pair counts of the swept groups.
KernelMapPairs allocate_pairs(KernelMapRequest const& request, Swept swept,
                              std::vector<std::int64_t> const& totals);

/// Pairs of all groups whose out rows are [first_row, first_row + rows): those of group k begin at
/// begins[k].
struct PairSlab {
    std::span<std::int64_t const> begins;
    std::span<std::int64_t const> counts;
    std::size_t first_row;
    std::size_t rows;
};
/// Sorts the pairs of a slab by row, group by group.
void sort_slab(KernelMapPairs& pairs, PairSlab const& slab);

/// Sorts the swept groups by row, unless `in_order`, and fills their mirrors.
void finish_groups(KernelMapPairs& pairs, std::size_t out_rows, Swept swept, bool in_order);

}  // namespace tensorhash::coords
