// A kernel map's arguments after they were checked: what every path answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "coords/rows/rows.hpp"
#include "coords/tables/coord_index.hpp"
#include "tensorhash/coords/kernel_map.hpp"

namespace tensorhash::coords {

inline constexpr std::int64_t kMaxOffsets = std::int64_t{1} << 24;

inline std::int32_t const* row_of(CoordRows const& rows, std::size_t i) noexcept {
    return rows.data() + i * rows.columns;
}

struct Question {
    CoordRows in{};
    CoordRows out{};
    std::size_t axes = 0;
    Shape stride{};                       // per axis
    Shape size{};                         // per axis, of the kernel
    Shape dilation{};                     // per axis
    std::vector<std::int32_t> offsets{};  // [all, axes]
    std::size_t all = 0;                  // offsets of the kernel
    std::size_t groups = 0;               // the first so many are wanted
    Duplicates duplicates = Duplicates::Refuse;
    bool unstrided = false;  // stride 1 on every axis
    bool equal = false;      // in and out are the same rows in the same order
    bool odd = false;        // every axis of the kernel is odd; true for a list of offsets
    bool centered = false;   // offset[all - 1 - k] == -offset[k]

    std::int32_t const* offset(std::size_t k) const noexcept { return offsets.data() + k * axes; }
    /// What is sought for an out row under offset k.
    Shift shift(std::size_t k) const noexcept;
    /// Group all - 1 - k is group k with in and out exchanged, if no coordinate is repeated.
    bool mirrored() const noexcept { return equal && unstrided && odd && centered; }
};

/// Throws what generate_kernel_map promises to throw; `out_name` is what the caller calls out_coords.
Question check_question(Tensor const& in_coords, Tensor const& out_coords, Shape const& stride,
                        Kernel const& kernel, KernelMapOptions const& options,
                        char const* out_name = "out_coords");

/// The same for a list of offsets in place of a kernel; only flat_kernel_map answers it.
Question check_offsets_question(Tensor const& in_coords, Tensor const& out_coords,
                                Shape const& stride, Tensor const& kernel_offsets,
                                Duplicates duplicates);

/// ValueError: `row` of in_coords repeats `first`.
[[noreturn]] void fail_repeated(std::size_t row, std::size_t first);

/// The pairs of a path, and whether in_coords had repeated rows.
struct Answer {
    Tensor in_maps{};
    Tensor out_maps{};
    Tensor offsets{};
    bool repeated = false;
    std::int64_t coarse_probes = 0;
    std::int64_t fine_probes = 0;
};

/// Sorts and merges: no lookups.
Answer merge_kernel_map(Question const& question);

/// In rows as bits in blocks of cells. Nothing if they lie too far apart for it; only kernels that it takes.
std::optional<Answer> blocks_kernel_map(Question const& question);
/// Whether it does: up to three axes, up to 16 wide, dilation 1; there must be an in row.
bool blocks_take(Question const& question) noexcept;
/// ValueError that names the axis unless the kernel is one that it takes.
void check_blocks_take(Question const& question);

/// One lookup per out row and offset in an index over in_coords.
Answer flat_kernel_map(Question const& question, CoordIndex const& index);

/// Lookups of coarse cells first; `coarse_stride` is a power of two. Throws ValueError unless it takes the kernel.
Answer hierarchical_kernel_map(Question const& question, CoordIndex const& index,
                               std::int64_t coarse_stride);
/// Whether it does: odd, centered, three axes, dilation 1.
bool hierarchical_takes(Question const& question) noexcept;

}  // namespace tensorhash::coords
