// The loops of flat_engine.hpp, compiled once per instruction-set level like engine.cpp and under
// the same rule: only plain types of the standard library.
#include "cpu/flat_engine.hpp"

#include "cpu/level_name.hpp"
#include "runtime/inlined.hpp"

namespace tensorhash::cpu {
inline namespace TH_STEP_NAMESPACE {
namespace {

using namespace step;

// Rows between the prefetch of a slot and its read. Two blocks of keys stay in L1.
constexpr std::size_t kBlock = 64;

std::size_t smaller(std::size_t a, std::size_t b) { return a < b ? a : b; }

/// Packs `count` rows into keys. Returns how many are out of range.
template <std::uint32_t Columns, class Int>
std::size_t pack_block(Int const* rows, std::size_t count, std::uint64_t* keys) {
    std::size_t outside = 0;
    for (std::size_t i = 0; i < count; ++i) {
        Int const* const row = rows + i * Columns;
        std::uint64_t const key = packed_or_empty<Int>(
            row[0], Columns > 1 ? row[1] : 0, Columns > 2 ? row[2] : 0, Columns > 3 ? row[3] : 0);
        keys[i] = key;
        outside += key == kEmptyKey ? 1 : 0;
    }
    return outside;
}

#if defined(TH_SIMD_AVX2)
/// pack_block<4> for int32, four rows at a time.
inline void pack_four_rows(std::int32_t const* rows, std::uint64_t* keys) {
    auto const two_rows = [&](std::ptrdiff_t first, std::ptrdiff_t second) {
        auto const row = [&](std::ptrdiff_t i) {
            return _mm_loadu_si128(reinterpret_cast<__m128i const*>(rows + 4 * i));
        };
        return _mm256_inserti128_si256(_mm256_castsi128_si256(row(first)), row(second), 1);
    };
    __m256i const field = _mm256_set1_epi64x(static_cast<long long>(kCoordMask << 32 | kCoordMask));
    __m256i const fields = _mm256_blend_epi32(field, _mm256_set1_epi32(kBatchMax), 0x11);
    __m256i const least =
        _mm256_set_epi32(kCoordMin, kCoordMin, kCoordMin, 0, kCoordMin, kCoordMin, kCoordMin, 0);
    // Joins a pair (b, x) or (y, z) as first << 18 | second, in 64 bits.
    auto const joined = [&](__m256i pairs) {
        __m256i const inner = _mm256_and_si256(pairs, fields);
        __m256i const first = _mm256_srli_epi64(_mm256_slli_epi64(inner, 32), 32 - 18);
        return _mm256_or_si256(first, _mm256_srli_epi64(inner, 32));
    };
    // Minus its minimum, a number in range has no bit outside its field.
    auto const outside = [&](__m256i pairs) {
        return _mm256_andnot_si256(fields, _mm256_sub_epi32(pairs, least));
    };
    __m256i const even = two_rows(0, 2);
    __m256i const odd = two_rows(1, 3);
    __m256i const even_joined = joined(even);
    __m256i const odd_joined = joined(odd);
    __m256i const high = _mm256_unpacklo_epi64(even_joined, odd_joined);
    __m256i const low = _mm256_unpackhi_epi64(even_joined, odd_joined);
    __m256i const key = _mm256_or_si256(_mm256_or_si256(_mm256_slli_epi64(high, 36), low),
                                        _mm256_set1_epi64x(static_cast<long long>(kValidBit)));
    __m256i const even_outside = outside(even);
    __m256i const odd_outside = outside(odd);
    __m256i const any = _mm256_or_si256(_mm256_unpacklo_epi64(even_outside, odd_outside),
                                        _mm256_unpackhi_epi64(even_outside, odd_outside));
    __m256i const inside = _mm256_cmpeq_epi64(any, _mm256_setzero_si256());
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(keys), _mm256_and_si256(key, inside));
}
#endif

/// pack_block<4> for int32, without the count.
inline void pack_usual(std::int32_t const* rows, std::size_t count, std::uint64_t* keys) {
    std::size_t i = 0;
#if defined(TH_SIMD_AVX2)
    for (; i + 4 <= count; i += 4) {
        pack_four_rows(rows + 4 * i, keys + i);
    }
#endif
    pack_block<4>(rows + 4 * i, count - i, keys + i);
}

template <class Int>
std::size_t pack_columns(FlatRows const& rows, std::size_t begin, std::size_t count,
                         std::uint64_t* keys) {
    auto const* const first = static_cast<Int const*>(rows.data) + begin * rows.columns;
    switch (rows.columns) {
        case 1:
            return pack_block<1>(first, count, keys);
        case 2:
            return pack_block<2>(first, count, keys);
        case 3:
            return pack_block<3>(first, count, keys);
        default:
            return pack_block<4>(first, count, keys);
    }
}

std::size_t pack(FlatRows const& rows, std::size_t begin, std::size_t end, std::uint64_t* keys) {
    return rows.wide ? pack_columns<std::int64_t>(rows, begin, end - begin, keys)
                     : pack_columns<std::int32_t>(rows, begin, end - begin, keys);
}

/// A block of rows in flight: its keys and the slots where their probes begin.
struct Block {
    std::uint64_t keys[kBlock];
    std::uint32_t starts[kBlock];
    std::size_t size;
};

/// Keeps two blocks in flight: while one is probed, the slots of the next are prefetched row by
/// row, so that memory and probing keep pace. `keys_of(begin, count, keys)` fills a block of keys.
/// `probe(block, out, ahead)` writes the results of a block and calls ahead(i) once per row.
template <class KeysOf, class Probe>
inline TH_INLINED void find_blocks(FlatView const& table, std::size_t count, std::int32_t* out,
                                   KeysOf const& keys_of, Probe const& probe) {
    Block blocks[2];
    auto const fill = [&](Block& block, std::size_t begin) {
        block.size = begin < count ? smaller(kBlock, count - begin) : 0;
        keys_of(begin, block.size, block.keys);
        for (std::size_t i = 0; i < block.size; ++i) {
            block.starts[i] = flat_start(table, block.keys[i]);
        }
    };
    auto const prefetch_slot = [&](Block const& block, std::size_t i) {
        if (i < block.size) {
            prefetch(&table.slots[block.starts[i]]);
        }
    };
    fill(blocks[0], 0);
    for (std::size_t i = 0; i < kBlock; ++i) {
        prefetch_slot(blocks[0], i);
    }
    unsigned half = 0;
    for (std::size_t begin = 0; begin < count; begin += kBlock, half ^= 1) {
        Block& next = blocks[half ^ 1];
        fill(next, begin + kBlock);
        probe(blocks[half], out + begin, [&](std::size_t i) { prefetch_slot(next, i); });
    }
}

/// Probes a block row by row with `find(key, start)`.
template <class Find>
inline TH_INLINED auto row_by_row(Find const& find) {
    return [&find](Block const& block, std::int32_t* out, auto const& ahead) {
        for (std::size_t i = 0; i < block.size; ++i) {
            ahead(i);
            out[i] = static_cast<std::int32_t>(find(block.keys[i], block.starts[i]));
        }
    };
}

/// Probes the first bucket of every row, then continues with the few rows that need more. First and
/// second buckets are prefetched, and no branch of the first pass depends on a key.
inline TH_INLINED auto bucket_by_bucket(FlatView const& table) {
    return [&table](Block const& block, std::int32_t* out, auto const& ahead) {
        std::uint32_t open[kBlock];
        std::size_t count = 0;
        for (std::size_t i = 0; i < block.size; ++i) {
            ahead(i);
            FirstBucket const first = probe_first_bucket(table, block.keys[i], block.starts[i]);
            out[i] = static_cast<std::int32_t>(first.row);
            open[count] = static_cast<std::uint32_t>(i);
            count += first.decided ? 0 : 1;
        }
        auto const second_bucket = [&](std::size_t k) {
            return (block.starts[open[k]] + kBucketSlots) & table.mask;
        };
        for (std::size_t k = 0; k < count; ++k) {
            prefetch(&table.slots[second_bucket(k)]);
        }
        for (std::size_t k = 0; k < count; ++k) {
            out[open[k]] = static_cast<std::int32_t>(
                flat_find_buckets<1>(table, block.keys[open[k]], second_bucket(k)));
        }
    };
}

template <class KeysOf>
inline TH_INLINED void find_all(FlatView const& shared, FlatWindow window, std::size_t count,
                                std::int32_t* out, KeysOf const& keys_of) {
    FlatView const table = shared;  // a copy stays in registers: stores to `out` cannot change it
    if (table.double_hash || table.mask < kBucketSlots - 1) {
        auto const find = [&](std::uint64_t key, std::uint32_t start) {
            return flat_find(table, key, start);
        };
        find_blocks(table, count, out, keys_of, row_by_row(find));
    } else if (window == FlatWindow::Bucket) {
        find_blocks(table, count, out, keys_of, bucket_by_bucket(table));
    } else {
        auto const find = [&](std::uint64_t key, std::uint32_t start) {
            return flat_find_buckets<4>(table, key, start);
        };
        find_blocks(table, count, out, keys_of, row_by_row(find));
    }
}

void find_keys(FlatView const& table, FlatWindow window, std::uint64_t const* keys,
               std::size_t count, std::int32_t* out) {
    find_all(table, window, count, out,
             [&](std::size_t begin, std::size_t size, std::uint64_t* block) {
                 for (std::size_t i = 0; i < size; ++i) {
                     block[i] = keys[begin + i];
                 }
             });
}

void find_rows(FlatView const& table, FlatWindow window, FlatRows const& rows, std::size_t begin,
               std::size_t end, std::int32_t* out) {
    if (rows.columns == 4 && !rows.wide) {  // the most common rows have their own loop
        auto const* const first = static_cast<std::int32_t const*>(rows.data) + begin * 4;
        find_all(table, window, end - begin, out,
                 [&](std::size_t from, std::size_t size, std::uint64_t* block) {
                     pack_usual(first + from * 4, size, block);
                 });
        return;
    }
    find_all(table, window, end - begin, out,
             [&](std::size_t from, std::size_t size, std::uint64_t* block) {
                 pack(rows, begin + from, begin + from + size, block);
             });
}

template <class Access>
FlatCount claim(FlatView const& table, std::uint64_t const* keys, std::size_t count,
                std::uint32_t first_row, std::uint32_t* positions) {
    constexpr std::size_t kAhead = 32;
    auto const prefetch_slot = [&](std::size_t i) {
        prefetch_for_write(&table.slots[flat_start(table, keys[i])]);
    };
    for (std::size_t i = 0; i < smaller(kAhead, count); ++i) {
        prefetch_slot(i);
    }
    FlatCount total;
    for (std::size_t i = 0; i < count; ++i) {
        if (i + kAhead < count) {
            prefetch_slot(i + kAhead);
        }
        FlatClaim const got =
            flat_claim<Access>(table, keys[i], first_row + static_cast<std::uint32_t>(i));
        if (got.full) {
            total.full = true;
            return total;
        }
        total.claimed += got.claimed ? 1 : 0;
        total.longest = got.steps > total.longest ? got.steps : total.longest;
        if (positions != nullptr) {
            positions[i] = got.position;
        }
    }
    return total;
}

FlatLoops const kTable{pack, find_keys, find_rows, claim<Exclusive>, claim<Shared>};

}  // namespace
}  // namespace TH_STEP_NAMESPACE

/// The loops of this level; dispatch.cpp declares one such function per level.
FlatLoops const& TH_LEVEL_NAME(flat_loops_)();
FlatLoops const& TH_LEVEL_NAME(flat_loops_)() { return kTable; }

}  // namespace tensorhash::cpu
