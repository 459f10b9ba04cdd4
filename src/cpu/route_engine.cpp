// The loops of route_engine.hpp, compiled once per instruction-set level; see engine.cpp. With
// AVX-512 and few shards they take sixteen rows at once: the rows of a shard are pressed together
// and stored, or loaded and spread out.
#include "cpu/route_engine.hpp"

#include <cstring>

#include "cpu/level_name.hpp"
#include "runtime/inlined.hpp"
#include "tensorhash/step/bucket.hpp"
#include "tensorhash/step/shard.hpp"

// GCC 12 warns of values that its own AVX-512 functions leave undefined on purpose (bug 105593).
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

namespace tensorhash::cpu {
inline namespace TH_STEP_NAMESPACE {
namespace {

using namespace step;

#if defined(TH_SIMD_AVX512)

constexpr bool kInVectors = true;

/// Calls body(row) for as many rows as fill vectors of sixteen. Returns the first row that is left.
template <class Body>
inline TH_INLINED std::size_t in_vectors(ShardedChunk const& chunk, Body const& body) {
    std::size_t row = chunk.begin;
    for (; chunk.shards <= kFewShards && chunk.end - row >= 16; row += 16) {
        body(row);
    }
    return row;
}

/// Calls body(shard, lanes, count, place) for the shards of the sixteen rows from `row` on: `count`
/// rows are those of the shard, and their first place is `place`.
template <class Body>
inline TH_INLINED void for_shards(ShardedChunk const& chunk, std::size_t row, Body const& body) {
    __m512i const shards = _mm512_loadu_si512(chunk.shard_of_row + row);
    for (std::uint32_t shard = 0; shard < chunk.shards; ++shard) {
        __mmask16 const lanes =
            _mm512_cmpeq_epi32_mask(shards, _mm512_set1_epi32(static_cast<int>(shard)));
        auto const count = static_cast<std::uint32_t>(__builtin_popcount(lanes));
        std::size_t const place = chunk.next[shard];
        chunk.next[shard] += count;
        body(shard, lanes, count, place);
    }
}

/// The lowest `count` lanes.
inline TH_INLINED __mmask16 lowest(std::uint32_t count) {
    return static_cast<__mmask16>((1u << count) - 1);
}

inline TH_INLINED std::size_t count_vectors(ShardedChunk const& chunk) {
    return in_vectors(chunk, [&](std::size_t row) TH_INLINED {
        for_shards(chunk, row, [](std::uint32_t, __mmask16, std::uint32_t, std::size_t) {});
    });
}

inline TH_INLINED std::size_t list_vectors(ShardedChunk const& chunk, std::uint32_t* to) {
    __m512i const lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    return in_vectors(chunk, [&](std::size_t row) TH_INLINED {
        __m512i const rows = _mm512_add_epi32(lane, _mm512_set1_epi32(static_cast<int>(row)));
        for_shards(chunk, row,
                   [&](std::uint32_t, __mmask16 lanes, std::uint32_t count, std::size_t place)
                       TH_INLINED {
                           _mm512_mask_storeu_epi32(to + place, lowest(count),
                                                    _mm512_maskz_compress_epi32(lanes, rows));
                       });
    });
}

/// Stores eight of the sixteen words; returns how many of them have their lane set.
inline TH_INLINED std::uint32_t press_eight(unsigned char* to, __m512i words, __mmask16 lanes) {
    auto const eight = static_cast<__mmask8>(lanes);
    auto const count = static_cast<std::uint32_t>(__builtin_popcount(eight));
    _mm512_mask_storeu_epi64(to, static_cast<__mmask8>(lowest(count)),
                             _mm512_maskz_compress_epi64(eight, words));
    return count;
}

inline TH_INLINED std::size_t group_vectors(ShardedChunk const& chunk, unsigned char const* from,
                                            unsigned char* to) {
    return in_vectors(chunk, [&](std::size_t row) TH_INLINED {
        __m512i const low = _mm512_loadu_si512(from + row * 8);
        __m512i const high = _mm512_loadu_si512(from + row * 8 + 64);
        for_shards(
            chunk, row,
            [&](std::uint32_t, __mmask16 lanes, std::uint32_t, std::size_t place) TH_INLINED {
                std::uint32_t const lower = press_eight(to + place * 8, low, lanes);
                press_eight(to + (place + lower) * 8, high, static_cast<__mmask16>(lanes >> 8));
            });
    });
}

/// Eight indices with the shards of their rows.
inline TH_INLINED __m512i global_indices(__m256i local, __m256i shards) {
    __m512i const wide = _mm512_cvtepi32_epi64(local);
    __mmask8 const is_found = static_cast<__mmask8>(~_mm512_movepi64_mask(wide));
    __m512i const high = _mm512_slli_epi64(_mm512_cvtepu32_epi64(shards), 32);
    return _mm512_mask_or_epi64(wide, is_found, wide, high);
}

/// Spreads a shard's indices out to its lanes.
inline TH_INLINED __m512i spread_indices(__m512i into, __mmask16 lanes, std::uint32_t count,
                                         std::uint32_t const* from) {
    return _mm512_mask_expand_epi32(into, lanes, _mm512_maskz_loadu_epi32(lowest(count), from));
}
inline TH_INLINED __m512i spread_mask(__m512i into, __mmask16 lanes, std::uint32_t count,
                                      unsigned char const* from) {
    __m128i const some = _mm_maskz_loadu_epi8(lowest(count), from);
    return _mm512_mask_expand_epi32(into, lanes, _mm512_cvtepu8_epi32(some));
}

inline TH_INLINED void store_indices(ShardedChunk const& chunk, std::size_t row, __m512i local,
                                     std::int64_t* indices) {
    auto const* const shards = reinterpret_cast<__m256i const*>(chunk.shard_of_row + row);
    _mm512_storeu_si512(indices + row,
                        global_indices(_mm512_castsi512_si256(local), _mm256_loadu_si256(shards)));
    _mm512_storeu_si512(indices + row + 8, global_indices(_mm512_extracti64x4_epi64(local, 1),
                                                          _mm256_loadu_si256(shards + 1)));
}
inline TH_INLINED void store_mask(__m128i bytes, unsigned char* mask) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(mask), bytes);
}

inline TH_INLINED std::size_t ungroup_found_vectors(ShardedChunk const& chunk,
                                                    std::uint32_t const* grouped,
                                                    std::int64_t* indices, unsigned char* mask) {
    return in_vectors(chunk, [&](std::size_t row) TH_INLINED {
        __m512i local = _mm512_setzero_si512();
        for_shards(
            chunk, row,
            [&](std::uint32_t, __mmask16 lanes, std::uint32_t count, std::size_t place)
                TH_INLINED { local = spread_indices(local, lanes, count, grouped + place); });
        store_indices(chunk, row, local, indices);
        auto const found = static_cast<__mmask16>(~_mm512_movepi32_mask(local));
        store_mask(_mm_maskz_set1_epi8(found, 1), mask + row);
    });
}

inline TH_INLINED std::size_t ungroup_vectors(ShardedChunk const& chunk,
                                              GroupedAnswers const& grouped, std::int64_t* indices,
                                              unsigned char* mask) {
    return in_vectors(chunk, [&](std::size_t row) TH_INLINED {
        __m512i local = _mm512_setzero_si512();
        __m512i is_set = _mm512_setzero_si512();
        for_shards(chunk, row,
                   [&](std::uint32_t, __mmask16 lanes, std::uint32_t count, std::size_t place)
                       TH_INLINED {
                           local = spread_indices(local, lanes, count, grouped.indices + place);
                           is_set = spread_mask(is_set, lanes, count, grouped.mask + place);
                       });
        store_indices(chunk, row, local, indices);
        store_mask(_mm512_cvtepi32_epi8(is_set), mask + row);
    });
}

inline TH_INLINED std::size_t ungroup_mask_vectors(ShardedChunk const& chunk,
                                                   unsigned char const* grouped,
                                                   unsigned char* mask) {
    return in_vectors(chunk, [&](std::size_t row) TH_INLINED {
        __m512i is_set = _mm512_setzero_si512();
        for_shards(chunk, row,
                   [&](std::uint32_t, __mmask16 lanes, std::uint32_t count, std::size_t place)
                       TH_INLINED { is_set = spread_mask(is_set, lanes, count, grouped + place); });
        store_mask(_mm512_cvtepi32_epi8(is_set), mask + row);
    });
}

/// mix() of eight words, with the published constants.
inline TH_INLINED __m512i mix_eight(__m512i x) {
    constexpr HashSecret kSecret;
    auto const every = [](std::uint64_t word)
                           TH_INLINED { return _mm512_set1_epi64(static_cast<long long>(word)); };
    x = _mm512_add_epi64(x, every(kSecret.start));
    x = _mm512_mullo_epi64(_mm512_xor_si512(x, _mm512_srli_epi64(x, 30)), every(kSecret.first));
    x = _mm512_mullo_epi64(_mm512_xor_si512(x, _mm512_srli_epi64(x, 27)), every(kSecret.second));
    return _mm512_xor_si512(x, _mm512_srli_epi64(x, 31));
}

/// shard_of_hash(shard_hash()) of eight words.
inline TH_INLINED std::size_t hash_vectors(unsigned char const* keys, std::uint32_t shards,
                                           std::size_t begin, std::size_t end,
                                           std::int32_t* shard_of_row) {
    std::size_t row = begin;
    for (; end - row >= 8; row += 8) {
        __m512i hash = _mm512_loadu_si512(keys + row * 8);
        hash = mix_eight(_mm512_xor_si512(hash, _mm512_set1_epi64(8)));
        hash = mix_eight(
            _mm512_xor_si512(hash, _mm512_set1_epi64(static_cast<long long>(kShardSeed))));
        hash = _mm512_mul_epu32(_mm512_srli_epi64(hash, 32), _mm512_set1_epi64(shards));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(shard_of_row + row),
                            _mm512_cvtepi64_epi32(_mm512_srli_epi64(hash, 32)));
    }
    return row;
}

#else

constexpr bool kInVectors = false;

// All rows are left.
std::size_t count_vectors(ShardedChunk const& chunk) { return chunk.begin; }
std::size_t list_vectors(ShardedChunk const& chunk, std::uint32_t*) { return chunk.begin; }
std::size_t group_vectors(ShardedChunk const& chunk, unsigned char const*, unsigned char*) {
    return chunk.begin;
}
std::size_t ungroup_found_vectors(ShardedChunk const& chunk, std::uint32_t const*, std::int64_t*,
                                  unsigned char*) {
    return chunk.begin;
}
std::size_t ungroup_vectors(ShardedChunk const& chunk, GroupedAnswers const&, std::int64_t*,
                            unsigned char*) {
    return chunk.begin;
}
std::size_t ungroup_mask_vectors(ShardedChunk const& chunk, unsigned char const*, unsigned char*) {
    return chunk.begin;
}
std::size_t hash_vectors(unsigned char const*, std::uint32_t, std::size_t begin, std::size_t,
                         std::int32_t*) {
    return begin;
}

#endif

/// Calls body(row, shard, place) for the rows from `row` on.
template <class Body>
inline TH_INLINED void for_rest(ShardedChunk const& chunk, std::size_t row, Body const& body) {
    for (; row < chunk.end; ++row) {
        auto const shard = static_cast<std::uint32_t>(chunk.shard_of_row[row]);
        body(row, shard, std::size_t{chunk.next[shard]++});
    }
}

void count_rows(ShardedChunk const& chunk) {
    for_rest(chunk, count_vectors(chunk), [](std::size_t, std::uint32_t, std::size_t) {});
}

void list_rows(ShardedChunk const& chunk, std::uint32_t* to) {
    for_rest(chunk, list_vectors(chunk, to),
             [&](std::size_t row, std::uint32_t, std::size_t place)
                 TH_INLINED { to[place] = static_cast<std::uint32_t>(row); });
}

void group_words(ShardedChunk const& chunk, unsigned char const* from, unsigned char* to) {
    for_rest(chunk, group_vectors(chunk, from, to),
             [&](std::size_t row, std::uint32_t, std::size_t place)
                 TH_INLINED { std::memcpy(to + place * 8, from + row * 8, 8); });
}

inline TH_INLINED std::int64_t global_index(std::uint32_t shard, std::uint32_t local) {
    return local == kNotFound ? -1 : static_cast<std::int64_t>(std::uint64_t{shard} << 32 | local);
}

void ungroup_found(ShardedChunk const& chunk, std::uint32_t const* grouped, std::int64_t* indices,
                   unsigned char* mask) {
    for_rest(chunk, ungroup_found_vectors(chunk, grouped, indices, mask),
             [&](std::size_t row, std::uint32_t shard, std::size_t place) TH_INLINED {
                 indices[row] = global_index(shard, grouped[place]);
                 mask[row] = grouped[place] != kNotFound ? 1 : 0;
             });
}

void ungroup(ShardedChunk const& chunk, GroupedAnswers const& grouped, std::int64_t* indices,
             unsigned char* mask) {
    for_rest(chunk, ungroup_vectors(chunk, grouped, indices, mask),
             [&](std::size_t row, std::uint32_t shard, std::size_t place) TH_INLINED {
                 indices[row] = global_index(shard, grouped.indices[place]);
                 mask[row] = grouped.mask[place];
             });
}

void ungroup_masks(ShardedChunk const& chunk, unsigned char const* grouped, unsigned char* mask) {
    for_rest(chunk, ungroup_mask_vectors(chunk, grouped, mask),
             [&](std::size_t row, std::uint32_t, std::size_t place)
                 TH_INLINED { mask[row] = grouped[place]; });
}

void hash_words(unsigned char const* keys, std::uint32_t shards, std::size_t begin, std::size_t end,
                std::int32_t* shard_of_row) {
    Narrow8 const reader(KeyFormat{8, 0});
    for (std::size_t row = hash_vectors(keys, shards, begin, end, shard_of_row); row < end; ++row) {
        std::uint64_t const hash = shard_hash(reader, 8, keys, row);
        shard_of_row[row] = static_cast<std::int32_t>(shard_of_hash(hash, shards));
    }
}

constexpr RouteLoops kLoops{hash_words,    count_rows, list_rows,     group_words,
                            ungroup_found, ungroup,    ungroup_masks, kInVectors};

}  // namespace
}  // namespace TH_STEP_NAMESPACE

/// The loops of this level; route_dispatch.cpp declares one such function per level.
RouteLoops const& TH_LEVEL_NAME(route_loops_)();
RouteLoops const& TH_LEVEL_NAME(route_loops_)() { return kLoops; }

}  // namespace tensorhash::cpu
