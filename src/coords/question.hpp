// A kernel map's arguments after they were checked: what every path answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tensorhash/coords/kernel_map.hpp"

namespace tensorhash::coords {

inline constexpr std::size_t kMaxColumns = 7;  // a batch and six axes
inline constexpr std::int64_t kMaxOffsets = std::int64_t{1} << 24;

/// Coordinates that passed: contiguous int32 rows, batch first.
struct CoordRows {
    Tensor tensor{};
    std::size_t rows = 0;
    std::size_t columns = 0;
    std::int32_t const* data() const noexcept {
        return static_cast<std::int32_t const*>(tensor.data());
    }
    std::int32_t const* row(std::size_t i) const noexcept { return data() + i * columns; }
};

struct Question {
    CoordRows in{};
    CoordRows out{};
    std::size_t axes = 0;
    Shape stride{};                         // per axis
    Shape size{};                           // per axis, of the kernel
    Shape dilation{};                       // per axis
    std::vector<std::int32_t> offsets{};    // [all, axes]
    std::size_t all = 0;                    // offsets of the kernel
    std::size_t groups = 0;                 // the first so many are wanted
    Duplicates duplicates = Duplicates::Refuse;
    bool unstrided = false;                 // stride 1 on every axis
    bool equal = false;                     // in and out are the same rows in the same order
    bool odd = false;                       // every axis of the kernel is odd
    bool centered = false;                  // offset[all - 1 - k] == -offset[k]

    std::int32_t const* offset(std::size_t k) const noexcept { return offsets.data() + k * axes; }
    /// Group all - 1 - k is group k with in and out exchanged, if no coordinate is repeated.
    bool mirrored() const noexcept { return equal && unstrided && odd && centered; }
};

/// Throws what generate_kernel_map promises to throw.
Question check_question(Tensor const& in_coords, Tensor const& out_coords, Shape const& stride,
                        Kernel const& kernel, KernelMapOptions const& options);

/// Integer rows [N, columns] that fit int32; columns 0: three to seven.
CoordRows check_coords(Tensor const& tensor, std::string_view argument, std::size_t columns = 0);

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

Answer merge_kernel_map(Question const& question);

}  // namespace tensorhash::coords
