// The paths that find the pairs of a kernel map on the CPU. Every path gives the same pairs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "backend/kernel_map_request.hpp"
#include "coords/rows/rows.hpp"
#include "coords/tables/coord_index.hpp"

namespace tensorhash::coords {

using backend::KernelMapPairs;
using backend::KernelMapRequest;

/// More out rows than this are taken slab by slab where blocks apply. That needs less memory, but
/// visits each slab twice.
inline constexpr std::size_t kSlabRows = std::size_t{1} << 21;

/// Rows [first, first + count) as int32, in new memory.
CoordRows copy_slab(CoordRows const& rows, std::size_t first, std::size_t count,
                    std::string_view argument);

/// Copies the rows as int32, except out rows for slabs, and sets `equal`. Throws ValueError if a
/// number does not fit, or if the request skips a mirrored half that does not exist.
KernelMapRequest own_rows_of(KernelMapRequest const& request);

/// The lookup of an out row under offset k.
Shift shift_of(KernelMapRequest const& request, std::size_t k) noexcept;

// The functions below take requests from own_rows_of(), except find_pairs_in().

/// The pairs by request.strategy, which may be Fastest.
KernelMapPairs find_pairs(KernelMapRequest const& request);

/// The hierarchical path from the rows of an index to request.out. Copies request.out, which may
/// have rows outside int32. Of equal rows the first counts.
KernelMapPairs find_pairs_in(CoordIndex const& index, KernelMapRequest const& request);

/// Sorts and merges: no lookups.
KernelMapPairs merge_kernel_map(KernelMapRequest const& request);

/// Stores the in rows as bits in blocks of cells. Needs an in row and backend::blocks_take();
/// nullopt if the rows are too sparse.
std::optional<KernelMapPairs> blocks_kernel_map(KernelMapRequest const& request);

/// One lookup per out row and offset in an index over the in rows.
KernelMapPairs flat_kernel_map(KernelMapRequest const& request, CoordIndex const& index);

/// Looks up coarse cells first. Needs backend::hierarchical_takes().
KernelMapPairs hierarchical_kernel_map(KernelMapRequest const& request, CoordIndex const& index);

}  // namespace tensorhash::coords
