// Row moves, with the widths that matter known to the compiler.
#include "table/rows.hpp"

#include <algorithm>
#include <cstring>

#include "runtime/parallel.hpp"
#include "runtime/streaming.hpp"
#include "tensorhash/step/platform.hpp"

namespace tensorhash::table {
namespace {

// Rows ahead whose far end is asked for, and how much of it: the processor goes on by itself with longer rows.
constexpr std::size_t kAhead = 16;
constexpr std::size_t kAskedFor = 512;

void ask_for(unsigned char const* row, std::size_t bytes) {
    constexpr std::size_t kLine = 64;
    std::size_t const asked = std::min(bytes, kAskedFor);
    for (std::size_t at = 0; at < asked; at += kLine) {
        kernel::prefetch(row + at);
    }
    if (bytes != 0 && kLine % bytes != 0) {  // it may end in one line more
        kernel::prefetch(row + asked - 1);
    }
}

// Results of this size on leave the cache before anybody reads them: written past it, they spare the read that a
// store into the cache begins with. 64-byte rows: 11 ms in place of 16 for 64 MB.
constexpr std::size_t kStreamedFrom = std::size_t{16} << 20;
constexpr std::size_t kStreamedRow = 64;

/// A row width of whole 16 bytes, to be written past the cache.
struct Streaming {
    std::size_t value;
    std::size_t bytes() const { return value; }
};

bool can_stream(unsigned char const* to, std::size_t row_bytes, std::size_t rows) {
    return row_bytes >= kStreamedRow && row_bytes % runtime::kStreamStep == 0 &&
           rows * row_bytes >= kStreamedFrom &&
           reinterpret_cast<std::uintptr_t>(to) % runtime::kStreamStep == 0;
}

template <class Width>
void copy_row(unsigned char* to, unsigned char const* from, Width width) {
    std::memcpy(to, from, width.bytes());
}

void copy_row(unsigned char* to, unsigned char const* from, Streaming width) {
    runtime::stream_bytes(to, from, width.bytes());
}

/// After the rows of a task.
template <class Width>
void end_rows(Width) {}
void end_rows(Streaming) { runtime::end_stream(); }

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
    auto const gather_all = [&](auto width) {
        runtime::for_ranges(rows, grain(row_bytes), [&](std::size_t begin, std::size_t end) {
            for (std::size_t row = begin; row < end; ++row) {
                if (row + kAhead < end && numbers[row + kAhead] != kMissing) {
                    ask_for(from + numbers[row + kAhead] * width.bytes(), width.bytes());
                }
                std::size_t const at = place(row);
                unsigned char* const out = to + at * width.bytes();
                if (numbers[row] != kMissing) {
                    copy_row(out, from + numbers[row] * width.bytes(), width);
                } else if (missing != nullptr) {
                    std::memcpy(out, missing + at * missing_step, width.bytes());
                } else {
                    std::memset(out, 0, width.bytes());
                }
            }
            end_rows(width);
        });
    };
    if (can_stream(to, row_bytes, rows)) {
        gather_all(Streaming{row_bytes});
    } else {
        with_width(row_bytes, gather_all);
    }
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
