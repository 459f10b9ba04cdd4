// Loops that number and partition rows by key, for group-by and join: one table of functions per
// instruction-set level. A key of up to 8 bytes is one mixed word, and equal words are equal keys.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensorhash/step/hash.hpp"

namespace tensorhash::cpu {

/// Narrow keys as the caller passes them: contiguous rows of 1 to 8 bytes.
struct NarrowKeys {
    unsigned char const* data;
    std::uint32_t bytes;
    std::uint32_t float_bytes;  // as in step::KeyFormat
};

/// The number of a word that a table does not have.
inline constexpr std::uint32_t kNoWord = 0xffffffffu;

/// Numbers distinct words from 0 on, in order of first occurrence. For one thread. Buckets have
/// four words. Word 0 marks an empty slot, so the key that mixes to 0 has its number in `zero`.
struct WordTable {
    std::uint64_t* words;       // 4 * (mask + 1), aligned to 32 bytes, zeros when empty
    std::uint32_t* numbers;     // of the slots
    std::uint64_t mask;         // buckets - 1
    std::uint64_t* listed;      // [limit]: the word of each number
    std::uint32_t* first_rows;  // [limit]: the row that added it
    std::uint32_t count;        // numbers given out
    std::uint32_t limit;        // at most 3 per bucket
    std::uint32_t zero;         // the number of word 0, or kNoWord
};

/// Words of a DirectTable are shifted together with those that have the same top bits.
inline constexpr std::size_t kShiftBits = 10;
inline constexpr std::size_t kShifts = std::size_t{1} << kShiftBits;
/// The words whose top bits are 0 stay where they are: empty slots look like words of theirs.
inline constexpr std::size_t kUnshifted = 0;

/// Numbers of words, without two words for one slot. A slot holds the high bits of its word. The
/// low bits follow from the shift and the place; instead of them the slot has low bits xor number.
/// So a slot xor its word is the number. Slot xor word is at least `mask` for a word that is not
/// here.
struct DirectTable {
    std::uint64_t* slots;   // mask + 1
    std::uint32_t* shifts;  // kShifts
    std::uint64_t mask;

    static std::size_t group_of(std::uint64_t word) noexcept { return word >> (64 - kShiftBits); }
    std::uint64_t slot_of(std::uint64_t word) const noexcept {
        return (word + shifts[group_of(word)]) & mask;
    }
    /// Numbers are below the mask.
    std::uint64_t entry(std::uint64_t word, std::uint32_t number) const noexcept {
        return (word & ~mask) | ((word & mask) ^ number);
    }
    std::uint64_t empty(std::uint64_t slot) const noexcept { return slot ^ mask; }
};

/// Rows of a part lie in blocks of this many, by columns: words, values, rows.
inline constexpr std::size_t kBlockRows = 256;
inline constexpr std::size_t kPartBits = 7;
inline constexpr std::size_t kParts = std::size_t{1} << kPartBits;
/// The most value columns that a partition carries beside the words.
inline constexpr std::size_t kMaxCarried = 3;

constexpr std::size_t block_bytes(std::size_t carried) {
    return kBlockRows * (8 + 8 * carried + 4);
}
/// Records that wait in cache until they fill whole cache lines.
constexpr std::size_t combine_bytes(std::size_t carried) { return 64 * (2 + 2 * carried + 1 + 1); }

/// One thread's output of a stable partition by the top bits of the word. The blocks of a part form
/// a list: head[part], then next[block]. All but the last are full.
struct PartWriter {
    unsigned char* arena;     // blocks
    unsigned char* combined;  // kParts * combine_bytes, aligned to 64
    std::uint32_t* next;      // [blocks]
    std::uint32_t used;       // blocks in use
    std::uint32_t head[kParts];
    std::uint32_t rows[kParts];
};

struct GroupLoops {
    /// The mixed words of rows [begin, begin + count).
    void (*mix)(NarrowKeys const&, step::HashSecret const&, std::size_t begin, std::size_t count,
                std::uint64_t* words);
    /// numbers[i] = the number of words[i]. A new word lists rows[i], or first_row + i without
    /// `rows`. Returns how many were numbered: fewer than `count` if the table is at its limit.
    std::size_t (*number)(WordTable&, std::uint64_t const* words, std::uint32_t const* rows,
                          std::uint32_t first_row, std::size_t count, std::uint32_t* numbers);
    /// numbers[i] = the number of words[i], or kNoWord. Never writes to the table.
    void (*look_up)(WordTable const&, std::uint64_t const* words, std::size_t count,
                    std::uint32_t* numbers);
    /// Fills in the numbers before the first word that is not in the table. Returns their count.
    std::size_t (*recall)(DirectTable const&, std::uint64_t const* words, std::size_t count,
                          std::uint32_t* numbers);
    /// Puts the listed words into an empty, larger table.
    void (*refill)(WordTable&);
    /// Appends `count` rows, by the number of value columns carried.
    struct Scatter {
        void (*begin)(PartWriter&);
        void (*add)(PartWriter&, std::uint64_t const* words, std::uint64_t const* const* values,
                    std::uint32_t first_row, std::size_t count);
        void (*end)(PartWriter&);
    };
    Scatter scatter[kMaxCarried + 1];
};

/// The loops at the best level that the machine and TENSORHASH_ISA allow.
GroupLoops const& group_loops();

}  // namespace tensorhash::cpu
