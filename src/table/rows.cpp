// Row moves, with the widths that matter known to the compiler.
#include "table/rows.hpp"

#include <cstring>

#include "runtime/parallel.hpp"

namespace tensorhash::table {
namespace {

// Rows ahead whose far end is asked for.
constexpr std::size_t kAhead = 16;

std::size_t grain(std::size_t row_bytes) {
    return std::max<std::size_t>(64, runtime::kGrain * 16 / (row_bytes + 8));
}

}  // namespace

void scatter_rows(unsigned char* to, unsigned char const* from, std::size_t row_bytes,
                  std::uint32_t const* numbers, unsigned char const* mask, std::size_t rows,
                  std::uint32_t const* order) {
    with_width(row_bytes, [&](auto width) {
        runtime::for_ranges(rows, grain(row_bytes), [&](std::size_t begin, std::size_t end) {
            for (std::size_t row = begin; row < end; ++row) {
                if (mask[row] != 0) {
                    std::size_t const at = order == nullptr ? row : order[row];
                    std::memcpy(to + numbers[row] * width.bytes(), from + at * width.bytes(),
                                width.bytes());
                }
            }
        });
    });
}

namespace {

/// Gathers to places that `place` names.
template <class Place>
void gather(unsigned char* to, Place const& place, unsigned char const* from, std::size_t row_bytes,
            std::uint32_t const* numbers, std::size_t rows, unsigned char const* missing,
            std::size_t missing_step) {
    constexpr std::uint32_t kMissing = 0xffffffffu;
    with_width(row_bytes, [&](auto width) {
        runtime::for_ranges(rows, grain(row_bytes), [&](std::size_t begin, std::size_t end) {
            for (std::size_t row = begin; row < end; ++row) {
                if (row + kAhead < end && numbers[row + kAhead] != kMissing) {
                    __builtin_prefetch(from + numbers[row + kAhead] * width.bytes());
                }
                std::size_t const at = place(row);
                unsigned char* const out = to + at * width.bytes();
                if (numbers[row] != kMissing) {
                    std::memcpy(out, from + numbers[row] * width.bytes(), width.bytes());
                } else if (missing != nullptr) {
                    std::memcpy(out, missing + at * missing_step, width.bytes());
                } else {
                    std::memset(out, 0, width.bytes());
                }
            }
        });
    });
}

}  // namespace

void gather_rows(unsigned char* to, unsigned char const* from, std::size_t row_bytes,
                 std::uint32_t const* numbers, std::size_t rows, unsigned char const* missing,
                 std::size_t missing_step) {
    gather(
        to, [](std::size_t row) { return row; }, from, row_bytes, numbers, rows, missing,
        missing_step);
}

void gather_to(unsigned char* to, std::uint32_t const* places, unsigned char const* from,
               std::size_t row_bytes, std::uint32_t const* numbers, std::size_t rows,
               unsigned char const* missing, std::size_t missing_step) {
    if (places == nullptr) {
        return gather_rows(to, from, row_bytes, numbers, rows, missing, missing_step);
    }
    gather(
        to, [places](std::size_t row) { return std::size_t{places[row]}; }, from, row_bytes,
        numbers, rows, missing, missing_step);
}

}  // namespace tensorhash::table
