// The gather limit of gather.h. Every choice is the fastest one that was measured; README.md lists
// the others.
#include "gather.h"

#include <cstring>
#include <new>

#include "pages.hpp"
#include "pool.hpp"

struct th_gather {
    bench::Pages index;
    bench::Pages key_buffer;
    std::uint64_t lines;
    std::uint64_t key_buffer_bytes;
    bench::Pool pool;
};

namespace {

// Rows in flight: more than the misses that a core can have under way, so that one slow miss does
// not stall the loop.
constexpr std::size_t kAhead = 128;

constexpr std::uint64_t kFactors[] = {0x9e3779b97f4a7c15u, 0xbf58476d1ce4e5b9u, 0x94d049bb133111ebu,
                                      0xd6e8feb86659fd93u, 0xa0761d6478bd642fu, 0xe7037ed1a0b428dbu,
                                      0x8ebc6af09c88c6e3u, 0x589965cc75374cc3u};

std::uint64_t load_word(unsigned char const* at, std::size_t bytes) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, bytes);
    return word;
}

/// Multiply-shift over the key's words: the cheapest mix that spreads random and structured keys
/// by its high bits. `Bytes` is the key's width, or 0 if it is only known at run time.
template <std::size_t Bytes>
inline std::uint64_t mix(unsigned char const* key, std::size_t width) {
    std::size_t const bytes = Bytes != 0 ? Bytes : width;
    std::uint64_t sum = 0;
    std::size_t at = 0;
    std::size_t word = 0;
    for (; at + 8 <= bytes; at += 8, ++word) {
        sum += load_word(key + at, 8) * kFactors[word % 8];
    }
    if constexpr (Bytes % 8 == 4) {
        sum += load_word(key + at, 4) * kFactors[word % 8];
    } else if (at < bytes) {
        sum += load_word(key + at, bytes - at) * kFactors[word % 8];
    }
    return sum;
}

/// Maps the high half of a mixed word to [0, count).
inline std::uint64_t place(std::uint64_t mixed, std::uint64_t count) {
    return (mixed >> 32) * count >> 32;
}

struct Job {
    unsigned char const* keys;
    std::size_t key_bytes;
    unsigned char* index;
    std::uint64_t lines;
    unsigned char* key_buffer;
    std::uint64_t entries;
    std::int32_t* out;
    std::uint8_t* mask;
};

/// The memory to touch per key: one cache line; two, for wide keys that are found; or one that is
/// written as by an insert, with a compare-and-swap if other threads may want the same slot.
enum class Touch { Line, LineAndKey, ChangedLine, ClaimedLine };

constexpr bool changes(Touch kind) {
    return kind == Touch::ChangedLine || kind == Touch::ClaimedLine;
}

/// The prefetched addresses of one row.
struct Flight {
    std::uint32_t line;
    std::uint32_t entry;
};

template <std::size_t Bytes, Touch Kind>
void gather_rows(Job const& job, std::size_t begin, std::size_t end) {
    std::size_t const width = Bytes != 0 ? Bytes : job.key_bytes;
    Flight flights[kAhead];
    auto const start = [&](std::size_t row) {
        std::uint64_t const mixed = mix<Bytes>(job.keys + row * width, width);
        Flight flight{static_cast<std::uint32_t>(place(mixed, job.lines)), 0};
        __builtin_prefetch(job.index + std::size_t{flight.line} * 64, changes(Kind));
        if constexpr (Kind == Touch::LineAndKey) {
            flight.entry = static_cast<std::uint32_t>(place(mixed * kFactors[1], job.entries));
            __builtin_prefetch(job.key_buffer + flight.entry * width);
        }
        flights[row % kAhead] = flight;
    };
    auto const finish = [&](std::size_t row, Flight flight) {
        unsigned char* const line = job.index + std::size_t{flight.line} * 64;
        std::uint64_t seen = load_word(line, 8);
        if constexpr (changes(Kind)) {  // a key and a ticket
            auto* const slot = reinterpret_cast<std::uint64_t*>(line) + row % 5;
            if constexpr (Kind == Touch::ClaimedLine) {
                std::uint64_t expected = *slot;
                __atomic_compare_exchange_n(slot, &expected, row, false, __ATOMIC_RELAXED,
                                            __ATOMIC_RELAXED);
            } else {
                *slot = row;
            }
            std::memcpy(line + 40 + row % 5 * 4, &row, 4);
        }
        if constexpr (Kind == Touch::LineAndKey) {
            seen ^= load_word(job.key_buffer + flight.entry * width, 8);
        }
        job.out[row] = static_cast<std::int32_t>(seen);
        job.mask[row] = seen != 0 ? 1 : 0;
    };
    std::size_t const primed = std::min(end, begin + kAhead);
    for (std::size_t row = begin; row < primed; ++row) {
        start(row);
    }
    std::size_t row = begin;
    for (; row + kAhead < end; ++row) {
        Flight const flight = flights[row % kAhead];
        start(row + kAhead);
        finish(row, flight);
    }
    for (; row < end; ++row) {
        finish(row, flights[row % kAhead]);
    }
}

using GatherRows = void (*)(Job const&, std::size_t, std::size_t);

template <Touch Kind>
GatherRows rows_of(std::int32_t key_bytes) {
    switch (key_bytes) {
        case 8:
            return gather_rows<8, Kind>;
        case 12:
            return gather_rows<12, Kind>;
        case 16:
            return gather_rows<16, Kind>;
        case 64:
            return gather_rows<64, Kind>;
        default:
            return gather_rows<0, Kind>;
    }
}

}  // namespace

th_gather* th_gather_make(int64_t index_bytes, int64_t key_buffer_bytes, int32_t threads) {
    constexpr std::int64_t kMost = std::int64_t{1} << 38;  // cache-line indices have 32 bits
    if (index_bytes < 64 || index_bytes > kMost || key_buffer_bytes < 0 ||
        key_buffer_bytes > kMost || threads < 1 || threads > 64) {
        return nullptr;
    }
    try {
        return new th_gather{bench::Pages(static_cast<std::size_t>(index_bytes)),
                             bench::Pages(static_cast<std::size_t>(key_buffer_bytes)),
                             static_cast<std::uint64_t>(index_bytes) / 64,
                             static_cast<std::uint64_t>(key_buffer_bytes), bench::Pool(threads)};
    } catch (...) {  // no memory, no thread
        return nullptr;
    }
}

namespace {

Job job_of(th_gather* gather, void const* keys, std::size_t width, int32_t* out, uint8_t* mask) {
    return {static_cast<unsigned char const*>(keys),
            width,
            gather->index.data(),
            gather->lines,
            gather->key_buffer.data(),
            gather->key_buffer_bytes / width,
            out,
            mask};
}

bool in_range(th_gather const* gather, int64_t rows, int32_t key_bytes) {
    return gather != nullptr && rows >= 0 && key_bytes >= 4 && key_bytes <= 256;
}

}  // namespace

int32_t th_gather_run(th_gather* gather, void const* keys, int64_t rows, int32_t key_bytes,
                      int32_t lines_per_key, int32_t* out, uint8_t* mask) {
    if (!in_range(gather, rows, key_bytes) || lines_per_key < 1 || lines_per_key > 2) {
        return -1;
    }
    Job const job = job_of(gather, keys, static_cast<std::size_t>(key_bytes), out, mask);
    if (lines_per_key == 2 && (key_bytes < 8 || job.entries == 0 || job.entries > 0xffffffffu)) {
        return -1;
    }
    auto* const gather_range = lines_per_key == 1 ? rows_of<Touch::Line>(key_bytes)
                                                  : rows_of<Touch::LineAndKey>(key_bytes);
    gather->pool.run(static_cast<std::size_t>(rows),
                     [&](std::size_t begin, std::size_t end) { gather_range(job, begin, end); });
    return 0;
}

int32_t th_gather_scatter(th_gather* gather, void const* keys, int64_t rows, int32_t key_bytes,
                          void const* values, int32_t value_bytes, int32_t* out, uint8_t* mask) {
    auto const width = static_cast<std::size_t>(key_bytes);
    auto const value_width = static_cast<std::size_t>(value_bytes);
    if (!in_range(gather, rows, key_bytes) || value_bytes < 0 ||
        static_cast<std::size_t>(rows) * (width + value_width) > gather->key_buffer_bytes) {
        return -1;
    }
    Job const job = job_of(gather, keys, width, out, mask);
    auto* const scatter_range = gather->pool.threads() > 1 ? rows_of<Touch::ClaimedLine>(key_bytes)
                                                           : rows_of<Touch::ChangedLine>(key_bytes);
    unsigned char* const to = job.key_buffer + static_cast<std::size_t>(rows) * width;
    auto const* const from = static_cast<unsigned char const*>(values);
    gather->pool.run(static_cast<std::size_t>(rows), [&](std::size_t begin, std::size_t end) {
        scatter_range(job, begin, end);
        std::memcpy(job.key_buffer + begin * width, job.keys + begin * width,
                    (end - begin) * width);
        std::memcpy(to + begin * value_width, from + begin * value_width,
                    (end - begin) * value_width);
    });
    return 0;
}

void th_gather_destroy(th_gather* gather) { delete gather; }
