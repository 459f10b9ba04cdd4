// Kernel maps: for every offset of a kernel, the pairs (in row, out row) that the offset joins.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "tensorhash/dtype.hpp"
#include "tensorhash/export.hpp"
#include "tensorhash/tensor.hpp"

namespace tensorhash::coords {

class CoordTableBase;

/// A box of offsets, one number per spatial axis. The first axis is the slowest, the last the fastest.
struct Kernel {
    Shape size;
    /// Empty: 1 on every axis.
    Shape dilation{};
    /// The place in the box that is offset 0. Empty: the middle of odd axes, the start of even ones.
    Shape center{};
};

/// int32 [K, axes + 1]: the kernel's offsets in order, with a batch column of zeros. 2 to 6 axes.
TH_API Tensor kernel_offsets_from_size(Kernel const& kernel);

/// How the pairs are found. Every way gives the same map.
enum class Strategy : std::uint8_t {
    Fastest,       // Blocks where they apply, else Merge
    Flat,          // one probe per out row and offset
    Hierarchical,  // probes of coarse cells first; odd kernels over three axes, dilation 1
    Merge,         // sorted coordinates merged with their own shift
    Seed,          // Hierarchical from 125 offsets on where it applies, else Flat
    Blocks,  // coordinates as bits in blocks of 8^3; up to three axes, up to 16 wide, dilation 1
};
/// "blocks", "flat", "hierarchical", "merge", "seed"; throws ValueError that lists them.
TH_API Strategy strategy_from_name(std::string_view name);
TH_API std::string_view name(Strategy strategy) noexcept;

/// What repeated rows of in_coords mean.
enum class Duplicates : std::uint8_t {
    Refuse,  // ValueError
    First,   // the first of equal rows stands for all
};

struct KernelMapOptions {
    Strategy strategy = Strategy::Fastest;
    Duplicates duplicates = Duplicates::Refuse;
    /// Only the groups before the middle one: the others mirror them.
    bool skip_symmetric = false;
};

/// Pairs grouped by offset: group k is [offsets[k], offsets[k + 1]) of both maps, ascending by out row, then by in row.
struct KernelMap {
    Tensor in_maps;   // int32 [L]
    Tensor out_maps;  // int32 [L]
    Tensor offsets;   // int64 [K + 1]
    std::int64_t num_in = 0;
    std::int64_t num_out = 0;
    /// The group that joins every row with itself: odd kernels over equal coordinates only.
    std::optional<std::int64_t> identity_map_index{};
    /// The path that was taken, and the lookups it made.
    Strategy strategy = Strategy::Merge;
    std::int64_t coarse_probes = 0;
    std::int64_t fine_probes = 0;
};

/// All pairs with in_coords[i] == stride * out_coords[o] + offset[k] in the same batch, each exactly once.
/// Coordinates are integers [N, axes + 1], batch first, that fit int32.
TH_API KernelMap generate_kernel_map(Tensor const& in_coords, Tensor const& out_coords,
                                     Shape const& stride, Kernel const& kernel,
                                     KernelMapOptions const& options = {});

/// The same for any list of offsets: int32 or int64 [K, axes + 1], column 0, the batch, zero. Group k is offset k, one
/// lookup per out row and offset.
TH_API KernelMap kernel_map_from_offsets(Tensor const& in_coords, Tensor const& out_coords,
                                         Shape const& stride, Tensor const& kernel_offsets,
                                         Duplicates duplicates = Duplicates::Refuse);

/// The hierarchical path over a table's rows, of equal ones the first: the table itself is probed. `stride`, the width
/// of a coarse cell, is a power of two. An odd kernel over three axes, dilation 1.
TH_API KernelMap kernel_map_from_size_hierarchical(CoordTableBase const& fine_ht,
                                                   Tensor const& query_coords,
                                                   Shape const& kernel_size,
                                                   std::int64_t stride = 4);

/// The map with in and out exchanged: what a transposed convolution needs.
TH_API KernelMap transpose(KernelMap const& map);

/// int32 [K, num_out]: the in row of each offset and out row, or -1. Throws ValueError if a place has two.
TH_API Tensor pair_table(KernelMap const& map);

/// int32 [num_out, ceil(K / 32)]: bit k % 32 of word k / 32 says that offset k has a pair for the row.
TH_API Tensor pair_mask(KernelMap const& map);

/// The pairs by out row, then by offset.
struct KernelMapCsr {
    Tensor in_maps;   // int32 [L]
    Tensor out_rows;  // int32 [U]: the out rows that have pairs, ascending
    Tensor offsets;   // int64 [U + 1]
};
TH_API KernelMapCsr to_csr(KernelMap const& map);

}  // namespace tensorhash::coords
