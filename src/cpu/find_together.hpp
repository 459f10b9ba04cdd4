// Find of narrow keys with AVX-512: buckets are read row by row, and their answers are decided for
// sixteen rows at once. `find_together` has over 50 lines: its lambdas share registers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "cpu/pipeline.hpp"
#include "tensorhash/step/find.hpp"

#if defined(TH_SIMD_AVX512)

namespace tensorhash::cpu {
inline namespace TH_STEP_NAMESPACE {

inline constexpr std::size_t kDecided = 16;
// A power of two with room for a block that is not decided, the rows in flight and two more blocks.
inline constexpr std::size_t kDecidedRing = 2 * kAhead;
static_assert(kAhead + 3 * kDecided <= kDecidedRing);

/// What sixteen rows saw in their home buckets. A row without its key has the spare ticket.
struct Seen16 {
    alignas(64) std::uint32_t tickets[kDecided];
    alignas(16) std::uint8_t lanes[kDecided];

    template <class Index>
    TH_INLINED void look(std::size_t i, Index const& index, std::uint64_t hash,
                         std::uint64_t home) {
        std::uint32_t const found = index.read(home).with_word(hash);
        std::uint32_t const lane = step::lowest_bit(found | 1u << step::NarrowBucket::kSpareLane);
        tickets[i] = index.buckets[home].tickets[lane];
        lanes[i] = static_cast<std::uint8_t>(found);
    }
};

/// A bit per row in the masks.
struct Decided16 {
    __m512i buf_indices;
    __mmask16 found;
    __mmask16 late;  // the home bucket cannot decide

    /// The rows' hashes and homes are adjacent and aligned.
    TH_INLINED Decided16(Seen16 const& seen, std::uint64_t const* hashes,
                         std::uint32_t const* homes) {
        __m512i const all = _mm512_set1_epi32(-1);
        __m512i const tickets = _mm512_load_si512(seen.tickets);
        __m128i const lanes = _mm_load_si128(reinterpret_cast<__m128i const*>(seen.lanes));
        found = _mm_test_epi8_mask(lanes, lanes);
        buf_indices = _mm512_mask_xor_epi32(all, found, tickets, all);
        __m512i const low_hashes = _mm512_load_si512(hashes);
        __m512i const high_hashes = _mm512_load_si512(hashes + kDecided / 2);
        auto const missed = static_cast<__mmask16>(~found);
        late = _mm512_mask_test_epi32_mask(
            missed, overflow_of_class(tickets, low_hashes, high_hashes), _mm512_set1_epi32(1));
        // Buckets 0 and 1 have no overflow bits. The keys without a slot have their home there.
        static_assert(!step::NarrowBucket::has_overflow_bits(1) &&
                      step::NarrowBucket::has_overflow_bits(2));
        auto const first = _mm512_cmple_epu32_mask(_mm512_load_si512(homes), _mm512_set1_epi32(1));
        __m512i const last_side = _mm512_set1_epi64(step::NarrowBucket::kErased);
        auto const side = _mm512_kunpackb(_mm512_cmple_epu64_mask(high_hashes, last_side),
                                          _mm512_cmple_epu64_mask(low_hashes, last_side));
        late = static_cast<__mmask16>(late | (first & (missed | side)));
    }
    TH_INLINED void write(std::uint32_t* to, std::uint8_t* mask) const {
        _mm512_storeu_si512(to, buf_indices);
        _mm_storeu_si128(reinterpret_cast<__m128i*>(mask), _mm_maskz_set1_epi8(found, 1));
    }

private:
    /// Shifts the overflow bit of each row's class to the end.
    static TH_INLINED __m512i overflow_of_class(__m512i bits, __m512i low_hashes,
                                                __m512i high_hashes) {
        // class_of() is in the low halves of the hashes.
        __m512i const low_halves =
            _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
        __m512i const classes = _mm512_and_si512(
            _mm512_permutex2var_epi32(low_hashes, low_halves, high_hashes), _mm512_set1_epi32(31));
        return _mm512_maskz_srlv_epi32(0xffff, bits, classes);
    }
};

template <class Reader>
void find_together(step::IndexView const& view, step::BatchView const& rows, std::size_t begin,
                   std::size_t end) {
    using Index = step::NarrowIndex<Reader, step::Exclusive>;
    Index const index(view);
    step::BatchView const batch = rows;
    BatchRows const hash_rows(index, batch.keys);
    constexpr std::size_t kTogether = BatchRows<Index>::kRows;
    static_assert(kTogether > 1 && kDecided % kTogether == 0);
    // A row's place in the rings depends on `begin`, so that blocks of rows are aligned.
    alignas(64) std::uint64_t hashes[kDecidedRing];
    alignas(64) std::uint32_t homes[kDecidedRing];
    LateRows late;
    // A block is decided when the next one has been looked at. Its answers have left the store
    // buffer then, and a vector load of them need not wait.
    Seen16 seen[2]{};
    auto const at = [=](std::size_t row) TH_INLINED { return (row - begin) % kDecidedRing; };
    auto const hash_block = [&](std::size_t row) TH_INLINED {
        for (std::size_t i = row; i < row + kDecided && i < end; i += kTogether) {
            hash_rows(i, end, HashedRows{&hashes[at(i)], &homes[at(i)]});
        }
    };
    auto const seen_by = [&](std::size_t row)
                             TH_INLINED -> Seen16& { return seen[(row - begin) / kDecided % 2]; };
    auto const look = [&](std::size_t row, std::size_t i) TH_INLINED {
        seen_by(row).look(i, index, hashes[at(row) + i], homes[at(row) + i]);
    };
    auto const finish_late = [&] {
        late.drain([&](std::size_t row, std::uint64_t hash) TH_INLINED {
            step::Match const match = find(index, hash, batch, row);
            batch.buf_indices[row] = match.buf_index;
            batch.mask[row] = match.buf_index != step::kNotFound ? 1 : 0;
        });
    };
    auto const note_late = [&](std::size_t row, std::uint32_t is_late) TH_INLINED {
        for (; is_late != 0; is_late &= is_late - 1) {
            std::size_t const i = step::lowest_bit(is_late);
            step::prefetch(&index.buckets[next_bucket(index, homes[at(row) + i])]);
            if (late.add(row + i, hashes[at(row) + i])) {
                finish_late();
            }
        }
    };

    auto const decide = [&](std::size_t row) TH_INLINED {
        Decided16 const decided(seen_by(row), &hashes[at(row)], &homes[at(row)]);
        decided.write(batch.buf_indices + row, batch.mask + row);
        note_late(row, decided.late);
    };
    // Lanes beyond the last row hold anything: the mask of late rows leaves them out.
    auto const decide_last = [&](std::size_t row) TH_INLINED {
        std::size_t const count = end - row;
        std::uint32_t buf_indices[kDecided];
        std::uint8_t mask[kDecided];
        Decided16 const decided(seen_by(row), &hashes[at(row)], &homes[at(row)]);
        decided.write(buf_indices, mask);
        std::memcpy(batch.buf_indices + row, buf_indices, count * sizeof(*buf_indices));
        std::memcpy(batch.mask + row, mask, count);
        note_late(row, decided.late & ((1u << count) - 1));
    };

    for (std::size_t row = begin; row < begin + kAhead + kDecided; row += kDecided) {
        hash_block(row);
    }
    for (std::size_t row = begin; row < begin + kAhead && row < end; ++row) {
        step::prefetch(&index.buckets[homes[at(row)]]);
    }
    std::size_t row = begin;
    for (; row + kAhead + kDecided <= end; row += kDecided) {
        hash_block(row + kAhead + kDecided);
        for (std::size_t i = 0; i < kDecided; ++i) {
            step::prefetch(&index.buckets[homes[at(row + kAhead) + i]]);
            look(row, i);
        }
        if (row != begin) {
            decide(row - kDecided);
        }
    }
    for (std::size_t r = row + kAhead; r < end; ++r) {
        step::prefetch(&index.buckets[homes[at(r)]]);
    }
    for (; row < end; row += kDecided) {
        for (std::size_t i = 0; i < kDecided && row + i < end; ++i) {
            look(row, i);
        }
        if (row != begin) {
            decide(row - kDecided);
        }
    }
    if (begin < end) {
        decide_last(row - kDecided);
    }
    finish_late();
}

}  // namespace TH_STEP_NAMESPACE
}  // namespace tensorhash::cpu

#endif
