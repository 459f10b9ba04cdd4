// Rows of bytes, copied in pieces of 16, 8, 4, 2 or 1 bytes: as large as the alignment allows.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/grid.hpp"

namespace tensorhash::device {

/// The largest piece that divides rows of `row_bytes` at these addresses.
inline std::uint32_t piece_of(std::uint64_t row_bytes, std::uint64_t addresses = 0) {
    std::uint64_t const all = row_bytes | addresses | 16;
    return static_cast<std::uint32_t>(all & (~all + 1));
}
template <class... Pointers>
std::uint32_t piece_of(std::uint64_t row_bytes, void const* first, Pointers const*... others) {
    return piece_of(row_bytes, (reinterpret_cast<std::uintptr_t>(first) | ... |
                                reinterpret_cast<std::uintptr_t>(others)));
}

template <std::size_t Bytes>
TH_STEP void copy_aligned(unsigned char* to, unsigned char const* from) {
    __builtin_memcpy(__builtin_assume_aligned(to, Bytes), __builtin_assume_aligned(from, Bytes),
                     Bytes);
}

TH_STEP void copy_piece(unsigned char* to, unsigned char const* from, std::uint32_t piece) {
    switch (piece) {
        case 16:
            return copy_aligned<16>(to, from);
        case 8:
            return copy_aligned<8>(to, from);
        case 4:
            return copy_aligned<4>(to, from);
        case 2:
            return copy_aligned<2>(to, from);
        default:
            *to = *from;
    }
}

TH_STEP void zero_piece(unsigned char* to, std::uint32_t piece) {
    alignas(16) unsigned char const zeros[16] = {};
    copy_piece(to, zeros, piece);
}

TH_STEP void copy_row(unsigned char* to, unsigned char const* from, std::uint64_t bytes,
                      std::uint32_t piece) {
    for (std::uint64_t at = 0; at < bytes; at += piece) {
        copy_piece(to + at, from + at, piece);
    }
}

/// Rows cut into pieces: one thread per piece.
struct PieceGrid {
    std::uint64_t rows;
    std::uint64_t row_bytes;
    std::uint32_t piece;

    TH_STEP std::uint64_t size() const { return rows * (row_bytes / piece); }

    /// Calls body(row, offset in the row) for each of this thread's pieces.
    template <class Body>
    TH_STEP void for_pieces(Body const& body) const {
        std::uint64_t const each = row_bytes / piece;
        for_rows(rows * each, [&](std::uint64_t i) {
            if (each == 1) {
                body(i, std::uint64_t{0});
            } else {
                body(i / each, i % each * piece);
            }
        });
    }
};

}  // namespace tensorhash::device
