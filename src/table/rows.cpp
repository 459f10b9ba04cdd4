// Row copies, specialized for common widths.
#include "table/rows.hpp"

#include <algorithm>
#include <cstring>

#include "runtime/parallel.hpp"
#include "runtime/streaming.hpp"
#include "runtime/wanted_rows.hpp"
#include "tensorhash/step/bucket.hpp"
#include "tensorhash/step/platform.hpp"

namespace tensorhash::table {
namespace {

// How much of a row to prefetch: the hardware prefetcher continues in longer rows.
constexpr std::size_t kPrefetchedBytes = 512;

/// How many rows ahead to prefetch. Narrow rows need many: memory serves dozens of cache lines at
/// once.
constexpr std::size_t rows_ahead(std::size_t row_bytes) {
    return std::clamp<std::size_t>(8192 / std::max<std::size_t>(row_bytes, 1), 16, 64);
}

void prefetch_row(unsigned char const* row, std::size_t bytes) {
    constexpr std::size_t kCacheLine = 64;
    std::size_t const near = std::min(bytes, kPrefetchedBytes);
    for (std::size_t at = 0; at < near; at += kCacheLine) {
        step::prefetch(row + at);
    }
    if (bytes != 0 && kCacheLine % bytes != 0) {  // it may end in one more cache line
        step::prefetch(row + near - 1);
    }
}

// Results from this size on leave the cache before they are read. Streaming stores bypass the cache
// and avoid the read that an ordinary store begins with. 64 MB of 64-byte rows take 11 ms instead
// of 16.
constexpr std::size_t kStreamedFrom = std::size_t{16} << 20;
constexpr std::size_t kStreamedRow = 64;

/// A row width that is a multiple of 16 bytes, written by streaming stores.
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

/// Called after the rows of a task.
template <class Width>
void end_rows(Width) {}
void end_rows(Streaming) { runtime::end_stream(); }

std::size_t grain(std::size_t row_bytes) {
    return std::max<std::size_t>(64, runtime::kGrain * 16 / (row_bytes + 8));
}

}  // namespace

void scatter_rows(unsigned char* to, unsigned char const* from, std::size_t row_bytes,
                  std::uint32_t const* buf_indices, unsigned char const* mask, std::size_t rows,
                  std::uint32_t const* order) {
    with_width(row_bytes, [&](auto width) {
        runtime::for_ranges(rows, grain(row_bytes), [&](std::size_t begin, std::size_t end) {
            runtime::for_wanted_rows(
                begin, end, [&](std::size_t row) { return mask[row] != 0; },
                [&](std::size_t row) {
                    std::size_t const at = order == nullptr ? row : order[row];
                    std::memcpy(to + buf_indices[row] * width.bytes(), from + at * width.bytes(),
                                width.bytes());
                });
        });
    });
}

namespace {

/// Rows of one buffer.
struct OneSource {
    unsigned char const* from;
    unsigned char const* at(std::uint32_t index, std::size_t bytes) const {
        return from + index * bytes;
    }
};

/// Rows of `other` where the highest bit of the index is set.
struct TwoSources {
    unsigned char const* from;
    unsigned char const* other;
    unsigned char const* at(std::uint32_t index, std::size_t bytes) const {
        return ((index & kOther) != 0 ? other : from) + (index & ~kOther) * bytes;
    }
};

/// Gathers row i to place(i).
template <class Place, class Source>
void gather(unsigned char* to, Place const& place, Source source, std::size_t row_bytes,
            std::uint32_t const* buf_indices, std::size_t rows, unsigned char const* missing,
            std::size_t missing_step) {
    auto const gather_all = [&](auto width) {
        std::size_t const ahead = rows_ahead(width.bytes());
        runtime::for_ranges(rows, grain(row_bytes), [&](std::size_t begin, std::size_t end) {
            for (std::size_t row = begin; row < end; ++row) {
                if (row + ahead < end && buf_indices[row + ahead] != step::kNotFound) {
                    prefetch_row(source.at(buf_indices[row + ahead], width.bytes()), width.bytes());
                }
                std::size_t const at = place(row);
                unsigned char* const out = to + at * width.bytes();
                if (buf_indices[row] != step::kNotFound) {
                    copy_row(out, source.at(buf_indices[row], width.bytes()), width);
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
                 std::uint32_t const* buf_indices, std::size_t rows, unsigned char const* missing,
                 std::size_t missing_step) {
    gather(
        to, [](std::size_t row) { return row; }, OneSource{from}, row_bytes, buf_indices, rows,
        missing, missing_step);
}

void gather_either(unsigned char* to, unsigned char const* from, unsigned char const* other,
                   std::size_t row_bytes, std::uint32_t const* picks, std::size_t rows,
                   unsigned char const* missing, std::size_t missing_step) {
    gather(
        to, [](std::size_t row) { return row; }, TwoSources{from, other}, row_bytes, picks, rows,
        missing, missing_step);
}

void gather_to(unsigned char* to, std::uint32_t const* places, unsigned char const* from,
               std::size_t row_bytes, std::uint32_t const* buf_indices, std::size_t rows,
               unsigned char const* missing, std::size_t missing_step) {
    if (places == nullptr) {
        return gather_rows(to, from, row_bytes, buf_indices, rows, missing, missing_step);
    }
    gather(
        to, [places](std::size_t row) { return std::size_t{places[row]}; }, OneSource{from},
        row_bytes, buf_indices, rows, missing, missing_step);
}

}  // namespace tensorhash::table
