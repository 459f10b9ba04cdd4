// The paths that find the pairs of a kernel map on the CPU. Every path gives the same pairs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "backend/kernel_map_request.hpp"
#include "coords/rows/rows.hpp"
#include "coords/tables/coord_index.hpp"

namespace tensorhash::coords {

using backend::KernelMapPairs;
using backend::KernelMapRequest;

/// Copies the rows to int32 and finds out whether both are equal. ValueError if a number does not
/// fit, or if the mirrored half is to be skipped and there is none.
KernelMapRequest own_rows_of(KernelMapRequest const& request);

/// What is looked up for an out row under offset k.
Shift shift_of(KernelMapRequest const& request, std::size_t k) noexcept;

/// The paths below take requests of own_rows_of().

/// The pairs by request.strategy, which may be Fastest.
KernelMapPairs find_pairs(KernelMapRequest const& request);

/// The hierarchical path from the rows of an index to request.out, which may have rows outside
/// int32. Of equal rows the first counts.
KernelMapPairs find_pairs_in(CoordIndex const& index, KernelMapRequest const& request);

/// Sorts and merges: no lookups.
KernelMapPairs merge_kernel_map(KernelMapRequest const& request);

/// In rows as bits in blocks of cells. Needs an in row and a kernel of backend::blocks_take().
/// Nothing if the rows lie too far apart.
std::optional<KernelMapPairs> blocks_kernel_map(KernelMapRequest const& request);

/// One lookup per out row and offset in an index over the in rows.
KernelMapPairs flat_kernel_map(KernelMapRequest const& request, CoordIndex const& index);

/// Looks up coarse cells first. Needs a kernel of backend::hierarchical_takes().
KernelMapPairs hierarchical_kernel_map(KernelMapRequest const& request, CoordIndex const& index);

}  // namespace tensorhash::coords
