// Radix sort, least significant digit first. Each pass: a histogram per chunk, a scan, a scatter.
#include "coords/rows/sort.hpp"

#include <bit>
#include <span>
#include <utility>
#include <vector>

#include "runtime/memory.hpp"
#include "runtime/parallel.hpp"
#include "runtime/scan.hpp"

namespace tensorhash::coords {
namespace {

constexpr int kMaxDigitBits = 12;  // 4096 counters of 4 bytes fit L1

struct Arrays {
    std::uint64_t* keys;
    std::uint32_t* rows;
};

bool is_ascending(std::uint64_t const* keys, std::size_t count, int ignored) {
    for (std::size_t i = 1; i < count; ++i) {
        if (keys[i] >> ignored < keys[i - 1] >> ignored) {
            return false;
        }
    }
    return true;
}

/// One pass. `counts` holds a histogram per chunk, then the place of the next row of each digit.
void scatter_by_digit(Arrays from, Arrays to, runtime::Chunks const& chunks, int shift, int bits,
                      std::vector<std::uint32_t>& counts) {
    std::size_t const digits = std::size_t{1} << bits;
    std::uint64_t const mask = digits - 1;
    counts.assign(digits * chunks.count, 0);
    runtime::for_chunks(chunks, [&](std::size_t chunk, std::size_t begin, std::size_t end) {
        std::uint32_t* const count = counts.data() + chunk * digits;
        for (std::size_t i = begin; i < end; ++i) {
            ++count[(from.keys[i] >> shift) & mask];
        }
    });
    runtime::scan_groups(std::span(counts), digits);
    runtime::for_chunks(chunks, [&](std::size_t chunk, std::size_t begin, std::size_t end) {
        std::uint32_t* const place = counts.data() + chunk * digits;
        for (std::size_t i = begin; i < end; ++i) {
            std::uint64_t const key = from.keys[i];
            std::uint32_t const at = place[(key >> shift) & mask]++;
            to.keys[at] = key;
            to.rows[at] = from.rows[i];
        }
    });
}

}  // namespace

void sort_rows(std::uint64_t* keys, std::uint32_t* rows, std::size_t count, std::uint64_t largest,
               int ignored) {
    if (is_ascending(keys, count, ignored)) {
        return;
    }
    auto const total_bits = static_cast<int>(std::bit_width(largest >> ignored));
    int const passes = (total_bits + kMaxDigitBits - 1) / kMaxDigitBits;
    int const bits = (total_bits + passes - 1) / passes;
    runtime::Block key_scratch(count * sizeof(std::uint64_t));
    runtime::Block row_scratch(count * sizeof(std::uint32_t));
    Arrays const own{keys, rows};
    Arrays from = own;
    Arrays to{reinterpret_cast<std::uint64_t*>(key_scratch.data()),
              reinterpret_cast<std::uint32_t*>(row_scratch.data())};
    runtime::Chunks const chunks = runtime::cut(count, std::size_t{1} << 14);
    std::vector<std::uint32_t> counts;
    for (int pass = 0; pass < passes; ++pass) {
        scatter_by_digit(from, to, chunks, ignored + pass * bits, bits, counts);
        std::swap(from, to);
    }
    if (from.keys != own.keys) {
        runtime::copy_bytes(own.keys, from.keys, count * sizeof(std::uint64_t));
        runtime::copy_bytes(own.rows, from.rows, count * sizeof(std::uint32_t));
    }
}

}  // namespace tensorhash::coords
