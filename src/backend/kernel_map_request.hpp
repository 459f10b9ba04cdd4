// The arguments and the result of a kernel map on a back end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "backend/coord_rows.hpp"
#include "tensorhash/coords/types.hpp"
#include "tensorhash/export.hpp"

namespace tensorhash::backend {

/// The arguments of a kernel map. The public functions check everything that does not depend on the
/// numbers in the rows; the back end checks those numbers, because only it can read its memory.
struct KernelMapRequest {
    CoordRows in{};
    CoordRows out{};
    char const* out_name = "out_coords";  // the caller's name for `out`, for messages
    std::size_t axes = 0;
    Shape stride{};                       // per axis
    Shape size{};                         // of the kernel, per axis; empty for a list of offsets
    Shape dilation{};                     // per axis; empty for a list of offsets
    std::vector<std::int32_t> offsets{};  // [all, axes]
    std::size_t all = 0;                  // number of offsets of the kernel
    std::size_t groups = 0;               // number of offsets that are wanted: the first ones
    coords::Duplicates duplicates = coords::Duplicates::Refuse;
    coords::Strategy strategy = coords::Strategy::Fastest;  // never WarpConvNet
    std::int64_t coarse_stride = 4;  // width of a coarse cell of Hierarchical, a power of two
    bool unstrided = false;          // stride 1 on every axis
    bool odd = false;                // every axis of the kernel is odd; true for a list of offsets
    bool centered = false;           // offset[all - 1 - k] == -offset[k]
    bool equal = false;  // in and out are the same rows in the same order; set by the back end
    bool out_by_slabs = false;  // `out` is the caller's array: copy no more than a slab of it
    bool table = false;         // also the pair table, if it is made on the way

    std::int32_t const* offset(std::size_t k) const noexcept { return offsets.data() + k * axes; }
    /// Group all - 1 - k is group k with in and out exchanged, if no coordinate is repeated.
    bool mirrored() const noexcept { return equal && unstrided && odd && centered; }
};

/// The pairs of a kernel map, grouped by offset, and what the back end learned about the rows.
struct KernelMapPairs {
    Tensor in_maps{};                                     // int32 [L]
    Tensor out_maps{};                                    // int32 [L]
    Tensor offsets{};                                     // int64 [groups + 1]
    coords::Strategy strategy = coords::Strategy::Merge;  // the path that was used
    bool equal = false;                                   // as in KernelMapRequest
    bool repeated = false;                                // `in` has repeated rows
    std::int64_t coarse_probes = 0;
    std::int64_t fine_probes = 0;
    std::optional<Tensor> bounds{};  // a copy of `offsets` in host memory, if there is one
    std::optional<Tensor> table{};   // int32 [groups, out rows], as pair_table() makes it
};

/// Can the hierarchical path run this kernel? It must be odd and centered, with 3 axes and
/// dilation 1.
TH_API bool hierarchical_takes(KernelMapRequest const& request) noexcept;
/// If it cannot, throws a ValueError that names the argument and the axis.
void check_hierarchical_takes(KernelMapRequest const& request);

/// Can the blocks path run this kernel? It must have at most 3 axes, each at most 16 wide, and
/// dilation 1.
bool blocks_take(KernelMapRequest const& request) noexcept;
/// If it cannot, throws a ValueError that names the argument and the axis.
void check_blocks_take(KernelMapRequest const& request);

/// Throws ValueError unless half of the groups mirror the other half. Needs `equal`.
TH_API void check_skip_symmetric(KernelMapRequest const& request);

/// Throws ValueError: the caller wrote to an array during the call.
[[noreturn]] TH_API void fail_changed(char const* argument);
/// Throws ValueError: `row` of in_coords repeats row `first`.
[[noreturn]] TH_API void fail_repeated(std::size_t row, std::size_t first);

}  // namespace tensorhash::backend
