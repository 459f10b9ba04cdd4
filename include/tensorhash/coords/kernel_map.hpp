// Kernel maps: for every offset of a convolution kernel, the pairs (in row, out row) that it joins.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "tensorhash/coords/types.hpp"
#include "tensorhash/dtype.hpp"
#include "tensorhash/export.hpp"

namespace tensorhash::coords {

class CoordTableBase;

/// A box of offsets, with one number per spatial axis. The last axis varies fastest.
struct Kernel {
    Shape size;
    /// Empty: 1 on every axis.
    Shape dilation{};
    /// Where offset 0 lies in the box. Empty: the middle of odd axes, the start of even ones.
    Shape center{};
};

/// int32 [K, axes + 1]: the offsets in order, with a batch column of zeros. Takes 2 to 6 axes.
TH_API Tensor kernel_offsets_from_size(Kernel const& kernel);

/// From "blocks", "flat", "hierarchical", "merge" or "warpconvnet". Throws a ValueError that lists
/// these names.
TH_API Strategy strategy_from_name(std::string_view name);
/// The name of a strategy, as strategy_from_name() takes it.
TH_API std::string_view name(Strategy strategy) noexcept;

/// How to make a kernel map. The defaults suit most networks.
struct KernelMapOptions {
    Strategy strategy = Strategy::Fastest;
    Duplicates duplicates = Duplicates::Refuse;
    /// Return only the groups before the middle one; the others mirror them. Takes odd, centered
    /// kernels over equal coordinates with stride 1.
    bool skip_symmetric = false;
    /// Also make what pair_table() returns. On a device this costs nothing but its memory.
    bool pair_table = false;
};

/// Pairs grouped by offset: group k is [offsets[k], offsets[k + 1]) of both maps, ascending by out
/// row, then by in row.
struct KernelMap {
    Tensor in_maps;   ///< int32 [L]
    Tensor out_maps;  ///< int32 [L]
    Tensor offsets;   ///< int64 [K + 1]
    std::int64_t num_in = 0;
    std::int64_t num_out = 0;
    /// The group that joins every row with itself. Only for odd kernels and lists of offsets, with
    /// stride 1 and equal, distinct coordinates.
    std::optional<std::int64_t> identity_map_index{};
    /// The strategy used, and the number of its lookups.
    Strategy strategy = Strategy::Merge;
    std::int64_t coarse_probes = 0;
    std::int64_t fine_probes = 0;
    /// A copy of `offsets` in host memory, if the map was made on a device.
    std::optional<Tensor> bounds{};
    /// The pair table, if it was wanted.
    std::optional<Tensor> table{};
};

/// All pairs with in_coords[i] == stride * out_coords[o] + offset[k] in the same batch, each once.
/// Coordinates are int32 or int64 [N, axes + 1], batch first, and must fit int32.
TH_API KernelMap generate_kernel_map(Tensor const& in_coords, Tensor const& out_coords,
                                     Shape const& stride, Kernel const& kernel,
                                     KernelMapOptions const& options = {});

/// The same for any list of offsets: int32 or int64 [K, axes + 1] with 0 in the batch column.
/// Group k belongs to offset k. Takes one lookup per out row and offset.
TH_API KernelMap kernel_map_from_offsets(Tensor const& in_coords, Tensor const& out_coords,
                                         Shape const& stride, Tensor const& kernel_offsets,
                                         Duplicates duplicates = Duplicates::Refuse);

/// The hierarchical strategy over the rows of a table, which it probes directly. Of equal rows the
/// first counts. `stride` is the width of a coarse cell, a power of two. Takes odd kernels over
/// three axes with dilation 1.
TH_API KernelMap kernel_map_from_size_hierarchical(CoordTableBase const& fine_ht,
                                                   Tensor const& query_coords,
                                                   Shape const& kernel_size,
                                                   std::int64_t stride = 4);

/// Exchanges in and out rows, for a transposed convolution.
TH_API KernelMap transpose(KernelMap const& map);

/// int32 [K, num_out]: the in row of each offset and out row, or -1. Throws ValueError if an offset
/// joins an out row with two in rows. KernelMapOptions::pair_table makes it together with the map.
TH_API Tensor pair_table(KernelMap const& map);

/// int32 [num_out, ceil(K / 32)]: bit k % 32 of word k / 32 is set if offset k has a pair for the
/// row.
TH_API Tensor pair_mask(KernelMap const& map);

/// The pairs sorted by out row, then by offset.
struct KernelMapCsr {
    Tensor in_maps;   ///< int32 [L]
    Tensor out_rows;  ///< int32 [U]: the out rows that have pairs, ascending
    Tensor offsets;   ///< int64 [U + 1]
};
/// The same pairs, grouped by out row instead of by offset.
TH_API KernelMapCsr to_csr(KernelMap const& map);

}  // namespace tensorhash::coords
