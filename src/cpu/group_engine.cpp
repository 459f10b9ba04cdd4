// Loops that number and partition rows by key. This file is compiled once per instruction-set
// level, under the rule of engine.cpp: only plain types of the standard library.
#include "cpu/group_engine.hpp"

#include "cpu/level_name.hpp"
#include "runtime/streaming.hpp"
#include "tensorhash/step/key.hpp"

namespace tensorhash::cpu {
inline namespace TH_STEP_NAMESPACE {
namespace {

using step::HashSecret;

template <class Reader>
void mix_rows(Reader const& reader, unsigned char const* data, HashSecret const& secret,
              std::size_t begin, std::size_t count, std::uint64_t* words) {
    for (std::size_t i = 0; i < count; ++i) {
        words[i] = step::mix(reader.word(data, begin + i), secret);
    }
}

void mix(NarrowKeys const& keys, HashSecret const& secret, std::size_t begin, std::size_t count,
         std::uint64_t* words) {
    step::KeyFormat const format{keys.bytes, keys.float_bytes};
    if (keys.float_bytes == 0 && keys.bytes == 8) {
        mix_rows(step::Narrow8(format), keys.data, secret, begin, count, words);
    } else if (keys.float_bytes == 0 && keys.bytes == 4) {
        mix_rows(step::Narrow4(format), keys.data, secret, begin, count, words);
    } else {
        mix_rows(step::NarrowAny(format), keys.data, secret, begin, count, words);
    }
}

/// One bit per word of a bucket that equals `word`.
TH_STEP std::uint32_t matches(std::uint64_t const* bucket, std::uint64_t word) {
#if defined(TH_SIMD_AVX2)
    __m256i const lanes = _mm256_load_si256(reinterpret_cast<__m256i const*>(bucket));
    __m256i const wanted = _mm256_set1_epi64x(static_cast<long long>(word));
    return static_cast<std::uint32_t>(
        _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(lanes, wanted))));
#elif defined(TH_SIMD_SSE41)
    auto const* const pairs = reinterpret_cast<__m128i const*>(bucket);
    __m128i const wanted = _mm_set1_epi64x(static_cast<long long>(word));
    int const low = _mm_movemask_pd(_mm_castsi128_pd(_mm_cmpeq_epi64(pairs[0], wanted)));
    int const high = _mm_movemask_pd(_mm_castsi128_pd(_mm_cmpeq_epi64(pairs[1], wanted)));
    return static_cast<std::uint32_t>(low | high << 2);
#else
    std::uint32_t bits = 0;
    for (std::uint32_t lane = 0; lane < 4; ++lane) {
        bits |= (bucket[lane] == word ? 1u : 0u) << lane;
    }
    return bits;
#endif
}

/// The low bits are poorer in few-bit keys than the middle ones; the top bits select the part.
TH_STEP std::uint64_t home(WordTable const& table, std::uint64_t word) {
    return (word >> 8) & table.mask;
}

/// A slot of the word, or the empty slot where it belongs.
struct Slot {
    std::uint64_t at;
    bool is_found;
};
TH_STEP Slot slot_of(WordTable const& table, std::uint64_t word) {
    for (std::uint64_t bucket = home(table, word);; bucket = (bucket + 1) & table.mask) {
        std::uint64_t const* const words = table.words + 4 * bucket;
        std::uint32_t const found = matches(words, word);
        if (found != 0) [[likely]] {
            return {4 * bucket + step::lowest_bit(found), true};
        }
        std::uint32_t const empty = matches(words, 0);
        if (empty != 0) {
            return {4 * bucket + step::lowest_bit(empty), false};
        }
    }
}

TH_STEP std::uint32_t list_word(WordTable& table, std::uint64_t word, std::uint32_t row) {
    table.listed[table.count] = word;
    table.first_rows[table.count] = row;
    return table.count++;
}

/// Rows that are looked up before new words among them are added.
constexpr std::size_t kLookedUp = 256;

/// Numbers the words that are in their home bucket. Lists the other rows, without a branch: whether
/// a word is new cannot be predicted.
TH_STEP std::uint32_t number_known(WordTable const& table, std::uint64_t const* words,
                                   std::size_t count, std::uint32_t* numbers,
                                   std::uint32_t* others) {
    std::uint32_t listed = 0;
    for (std::size_t i = 0; i < count; ++i) {
        std::uint64_t const bucket = home(table, words[i]);
        std::uint32_t const found = matches(table.words + 4 * bucket, words[i]);
        numbers[i] = table.numbers[4 * bucket + step::lowest_bit(found | 8)];
        others[listed] = static_cast<std::uint32_t>(i);
        listed += static_cast<std::uint32_t>((found == 0) | (words[i] == 0));
    }
    return listed;
}

/// Numbers any word. False if it is new and the table at its limit.
TH_STEP bool number_one(WordTable& table, std::uint64_t word, std::uint32_t row,
                        std::uint32_t& number) {
    if (word == 0) [[unlikely]] {
        if (table.zero == kNoWord) {
            if (table.count == table.limit) return false;
            table.zero = list_word(table, 0, row);
        }
        number = table.zero;
        return true;
    }
    Slot const slot = slot_of(table, word);
    if (!slot.is_found) {
        if (table.count == table.limit) return false;
        table.words[slot.at] = word;
        table.numbers[slot.at] = list_word(table, word, row);
    }
    number = table.numbers[slot.at];
    return true;
}

std::size_t number(WordTable& shared, std::uint64_t const* words, std::uint32_t const* rows,
                   std::uint32_t first_row, std::size_t count, std::uint32_t* numbers) {
    WordTable table = shared;  // in registers: the stores below cannot change it
    std::uint32_t others[kLookedUp];
    for (std::size_t begin = 0; begin < count; begin += kLookedUp) {
        std::size_t const block = count - begin < kLookedUp ? count - begin : kLookedUp;
        std::uint32_t const listed =
            number_known(table, words + begin, block, numbers + begin, others);
        for (std::uint32_t i = 0; i < listed; ++i) {
            std::size_t const at = begin + others[i];
            std::uint32_t const row = rows ? rows[at] : first_row + static_cast<std::uint32_t>(at);
            if (!number_one(table, words[at], row, numbers[at])) {
                shared = table;
                return at;
            }
        }
    }
    shared = table;
    return count;
}

void look_up(WordTable const& table, std::uint64_t const* words, std::size_t count,
             std::uint32_t* numbers) {
    for (std::size_t i = 0; i < count; ++i) {
        if (words[i] == 0) [[unlikely]] {
            numbers[i] = table.zero;
            continue;
        }
        Slot const slot = slot_of(table, words[i]);
        numbers[i] = slot.is_found ? table.numbers[slot.at] : kNoWord;
    }
}

std::size_t recall(DirectTable const& table, std::uint64_t const* words, std::size_t count,
                   std::uint32_t* numbers) {
    std::uint64_t const* const slots = table.slots;
    std::uint32_t const* const shifts = table.shifts;
    std::uint64_t const mask = table.mask;
    for (std::size_t i = 0; i < count; ++i) {
        std::uint64_t const word = words[i];
        std::uint64_t const number =
            slots[(word + shifts[word >> (64 - kShiftBits)]) & mask] ^ word;
        if (number >= mask) [[unlikely]]
            return i;
        numbers[i] = static_cast<std::uint32_t>(number);
    }
    return count;
}

void refill(WordTable& table) {
    for (std::uint32_t i = 0; i < table.count; ++i) {
        if (table.listed[i] == 0) continue;
        Slot const slot = slot_of(table, table.listed[i]);
        table.words[slot.at] = table.listed[i];
        table.numbers[slot.at] = i;
    }
}

constexpr std::uint32_t kCombined = 16;

/// The records of one part that are not yet in its block.
template <std::size_t Carried>
struct alignas(64) Combined {
    std::uint64_t words[kCombined];
    std::uint64_t values[Carried == 0 ? 1 : Carried][kCombined];
    std::uint32_t rows[kCombined];
    unsigned char* block;
    std::uint32_t at;     // rows in the block
    std::uint32_t count;  // rows here
};
template <>
struct alignas(64) Combined<0> {
    std::uint64_t words[kCombined];
    std::uint32_t rows[kCombined];
    unsigned char* block;
    std::uint32_t at;
    std::uint32_t count;
};
static_assert(sizeof(Combined<0>) == combine_bytes(0));
static_assert(sizeof(Combined<1>) == combine_bytes(1));
static_assert(sizeof(Combined<2>) == combine_bytes(2));
static_assert(sizeof(Combined<3>) == combine_bytes(3));

/// The places of the next records in a block.
template <std::size_t Carried>
struct Place {
    unsigned char* words;
    unsigned char* values[Carried + 1];
    unsigned char* rows;

    TH_STEP explicit Place(Combined<Carried> const& part)
        : words(part.block + std::size_t{part.at} * 8),
          rows(part.block + kBlockRows * 8 * (1 + Carried) + std::size_t{part.at} * 4) {
        for (std::size_t k = 0; k < Carried; ++k) {
            values[k] = words + kBlockRows * 8 * (1 + k);
        }
    }
};

template <std::size_t Carried>
void take_block(PartWriter& writer, Combined<Carried>& part, std::size_t which) {
    std::uint32_t const block = writer.used++;
    if (writer.rows[which] == 0) {
        writer.head[which] = block;
    } else {
        auto const last = static_cast<std::size_t>(part.block - writer.arena);
        writer.next[last / block_bytes(Carried)] = block;
    }
    part.block = writer.arena + block * block_bytes(Carried);
    part.at = 0;
}

template <std::size_t Carried>
struct ScatterRows {
    using Part = Combined<Carried>;

    static void begin(PartWriter& writer) {
        auto* const parts = reinterpret_cast<Part*>(writer.combined);
        for (std::size_t which = 0; which < kParts; ++which) {
            parts[which].at = kBlockRows;
            parts[which].count = 0;
            writer.rows[which] = 0;
        }
        writer.used = 0;
    }

    static void add(PartWriter& writer, std::uint64_t const* words,
                    std::uint64_t const* const* values, std::uint32_t first_row,
                    std::size_t count) {
        auto* const parts = reinterpret_cast<Part*>(writer.combined);
        for (std::size_t i = 0; i < count; ++i) {
            std::size_t const which = words[i] >> (64 - kPartBits);
            Part& part = parts[which];
            std::uint32_t const at = part.count;
            part.words[at] = words[i];
            if constexpr (Carried > 0) {
                for (std::size_t k = 0; k < Carried; ++k) part.values[k][at] = values[k][i];
            }
            part.rows[at] = first_row + static_cast<std::uint32_t>(i);
            part.count = at + 1;
            if (at + 1 == kCombined) {
                stream_out(writer, part, which);
            }
        }
    }

    static void end(PartWriter& writer) {
        auto* const parts = reinterpret_cast<Part*>(writer.combined);
        for (std::size_t which = 0; which < kParts; ++which) {
            Part& part = parts[which];
            if (part.count == 0) continue;
            if (part.at == kBlockRows) take_block<Carried>(writer, part, which);
            Place<Carried> const to(part);
            __builtin_memcpy(to.words, part.words, part.count * 8);
            if constexpr (Carried > 0) {
                for (std::size_t k = 0; k < Carried; ++k) {
                    __builtin_memcpy(to.values[k], part.values[k], part.count * 8);
                }
            }
            __builtin_memcpy(to.rows, part.rows, part.count * 4);
            writer.rows[which] += part.count;
        }
        runtime::end_stream();
    }

private:
    TH_STEP static void stream_out(PartWriter& writer, Part& part, std::size_t which) {
        if (part.at == kBlockRows) take_block<Carried>(writer, part, which);
        Place<Carried> const to(part);
        auto const bytes = [](void const* from) { return static_cast<unsigned char const*>(from); };
        runtime::stream_bytes(to.words, bytes(part.words), sizeof(part.words));
        if constexpr (Carried > 0) {
            for (std::size_t k = 0; k < Carried; ++k) {
                runtime::stream_bytes(to.values[k], bytes(part.values[k]), sizeof(part.values[k]));
            }
        }
        runtime::stream_bytes(to.rows, bytes(part.rows), sizeof(part.rows));
        part.at += kCombined;
        part.count = 0;
        writer.rows[which] += kCombined;
    }
};

template <std::size_t Carried>
constexpr GroupLoops::Scatter kScatter{ScatterRows<Carried>::begin, ScatterRows<Carried>::add,
                                       ScatterRows<Carried>::end};

GroupLoops const kTable{mix,    number, look_up,
                        recall, refill, {kScatter<0>, kScatter<1>, kScatter<2>, kScatter<3>}};

}  // namespace
}  // namespace TH_STEP_NAMESPACE

/// The loops of this level; group_dispatch.cpp declares one such function per level.
GroupLoops const& TH_LEVEL_NAME(group_loops_)();
GroupLoops const& TH_LEVEL_NAME(group_loops_)() { return kTable; }

}  // namespace tensorhash::cpu
