// Copies rows of bytes between batches and buffers, in parallel.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tensorhash::table {

/// A row width known at compile time.
template <std::size_t Bytes>
struct Fixed {
    static constexpr std::size_t bytes() { return Bytes; }
};
struct AnyWidth {
    std::size_t value;
    std::size_t bytes() const { return value; }
};

/// Calls body(width); common widths are known at compile time.
template <class Body>
void with_width(std::size_t row_bytes, Body&& body) {
    switch (row_bytes) {
        case 1:
            return body(Fixed<1>{});
        case 2:
            return body(Fixed<2>{});
        case 4:
            return body(Fixed<4>{});
        case 8:
            return body(Fixed<8>{});
        case 12:
            return body(Fixed<12>{});
        case 16:
            return body(Fixed<16>{});
        case 32:
            return body(Fixed<32>{});
        case 64:
            return body(Fixed<64>{});
        default:
            return body(AnyWidth{row_bytes});
    }
}

/// to[buf_indices[i]] = from[i], or from[order[i]] if there is an order, for rows with a set mask.
/// Their buffer indices must be distinct.
void scatter_rows(unsigned char* to, unsigned char const* from, std::size_t row_bytes,
                  std::uint32_t const* buf_indices, unsigned char const* mask, std::size_t rows,
                  std::uint32_t const* order = nullptr);

/// to[i] = from[buf_indices[i]]. Where the buffer index is -1: row i of `missing` (its rows are
/// missing_step bytes apart; 0: one row for all), or zeros if it is null.
void gather_rows(unsigned char* to, unsigned char const* from, std::size_t row_bytes,
                 std::uint32_t const* buf_indices, std::size_t rows,
                 unsigned char const* missing = nullptr, std::size_t missing_step = 0);

/// Marks a pick of gather_either() as a row of `other`. Buffer indices need 31 bits.
inline constexpr std::uint32_t kOther = std::uint32_t{1} << 31;

/// The same from two buffers: to[i] = from[picks[i]], or other[picks[i] without kOther].
void gather_either(unsigned char* to, unsigned char const* from, unsigned char const* other,
                   std::size_t row_bytes, std::uint32_t const* picks, std::size_t rows,
                   unsigned char const* missing = nullptr, std::size_t missing_step = 0);

/// to[places[i]] = from[buf_indices[i]]; places are distinct (null: place i). Where the buffer
/// index is -1: row places[i] of `missing`, or zeros.
void gather_to(unsigned char* to, std::uint32_t const* places, unsigned char const* from,
               std::size_t row_bytes, std::uint32_t const* buf_indices, std::size_t rows,
               unsigned char const* missing, std::size_t missing_step);

}  // namespace tensorhash::table
