// Rows of a mask, 64 at a time: a branch on each byte would be unpredictable.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tensorhash::table {

/// One bit per row, for at most 64 bytes 0 or 1 of a mask.
inline std::uint64_t packed(unsigned char const* mask, std::size_t rows) noexcept {
    std::uint64_t bits = 0;
    std::size_t row = 0;
    for (; std::endian::native == std::endian::little && row + 8 <= rows; row += 8) {
        std::uint64_t eight = 0;
        std::memcpy(&eight, mask + row, 8);
        bits |= eight * 0x0102040810204080u >> 56 << row;
    }
    for (; row < rows; ++row) {
        bits |= std::uint64_t{mask[row]} << row;
    }
    return bits;
}

/// Calls body(row) for the bits that are set, with the number of the first bit's row.
template <class Body>
inline void for_bits(std::uint64_t bits, std::size_t first, Body const& body) {
    for (; bits != 0; bits &= bits - 1) {
        body(first + static_cast<std::size_t>(std::countr_zero(bits)));
    }
}

/// Calls all(from, to) for groups of rows that are all in the mask, and one(row) for the other rows
/// that are.
template <class All, class One>
inline void for_masked(unsigned char const* mask, std::size_t begin, std::size_t end,
                       All const& all, One const& one) {
    for (std::size_t row = begin; row < end; row += 64) {
        std::size_t const stop = std::min(row + 64, end);
        std::uint64_t const bits = packed(mask + row, stop - row);
        if (bits == ~std::uint64_t{0}) {
            all(row, stop);
        } else {
            for_bits(bits, row, one);
        }
    }
}

}  // namespace tensorhash::table
