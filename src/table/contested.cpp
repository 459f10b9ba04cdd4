#include "table/contested.hpp"

#include <algorithm>
#include <atomic>
#include <bit>

#include "table/mask_bits.hpp"
#include "tensorhash/step/hash.hpp"

namespace tensorhash::table {
namespace {

using runtime::for_chunks;

constexpr std::size_t kMinFilterBits = 1024;
/// Rows that are worked on together.
constexpr std::size_t kList = 1024;

std::size_t words_for(std::size_t rows) noexcept { return (rows + 63) / 64; }
std::size_t filter_bits(std::size_t rows) noexcept {
    return std::max(std::bit_floor(rows * 4), kMinFilterBits);
}

void set_bit(std::uint64_t* words, std::uint64_t place) noexcept {
    std::uint64_t const bit = std::uint64_t{1} << (place % 64);
    std::atomic_ref word(words[place / 64]);
    // Relaxed: bits are read after all threads have set theirs.
    if ((word.load(std::memory_order_relaxed) & bit) == 0) {
        word.fetch_or(bit, std::memory_order_relaxed);
    }
}

bool has_bit(std::uint64_t const* words, std::uint64_t place) noexcept {
    return (words[place / 64] >> (place % 64) & 1) != 0;
}

/// Calls body(list) for the rows in [begin, end) with their bit set, in row order. `body` may clear
/// bits of listed rows.
template <class Body>
void for_lists(std::uint64_t const* chosen, std::size_t begin, std::size_t end, Body const& body) {
    std::uint32_t rows[kList];
    std::size_t listed = 0;
    for (std::size_t word = begin / 64; word < words_for(end); ++word) {
        for_bits(chosen[word], word * 64,
                 [&](std::size_t row) { rows[listed++] = static_cast<std::uint32_t>(row); });
        if (listed + 64 > kList) {
            body(cpu::RowList{rows, listed});
            listed = 0;
        }
    }
    if (listed > 0) {
        body(cpu::RowList{rows, listed});
    }
}

/// Calls body(row, hash) for all these rows. Chunks run at once.
template <class Body>
void for_hashes(index::BucketIndex const& index, ErasedBatch const& batch,
                std::uint64_t const* chosen, Body const& body) {
    for_chunks(batch.chunks, [&](std::size_t, std::size_t begin, std::size_t end) {
        std::uint64_t hashes[kList];
        for_lists(chosen, begin, end, [&](cpu::RowList const& list) {
            index.hash(batch.rows.keys, list, hashes);
            for (std::size_t i = 0; i < list.count; ++i) {
                body(list.rows[i], hashes[i]);
            }
        });
    });
}

}  // namespace

std::size_t ContestedRows::bytes(std::size_t rows) noexcept {
    return 2 * (words_for(rows) + filter_bits(rows) / 64) * sizeof(std::uint64_t);
}

ContestedRows::ContestedRows(runtime::Block& memory, std::size_t rows) noexcept
    : rows_(rows), shift_(static_cast<unsigned>(64 - std::countr_zero(filter_bits(rows)))) {
    auto* const words = reinterpret_cast<std::uint64_t*>(memory.data());
    std::size_t const filter = filter_bits(rows) / 64;
    took_ = {words, words + 2 * words_for(rows)};
    missed_ = {words + words_for(rows), took_.filter + filter};
}

/// Chooses rows of the wanted kinds in [begin, end).
void ContestedRows::choose(ErasedBatch const& batch, std::size_t begin, std::size_t end,
                           bool with_took, bool with_missed) noexcept {
    for (std::size_t row = begin; row < end; row += 64) {
        std::size_t const count = std::min<std::size_t>(end - row, 64);
        std::uint64_t const all = ~std::uint64_t{0} >> (64 - count);
        std::uint64_t const took = packed(batch.rows.mask + row, count);
        took_.rows[row / 64] = with_took ? took : 0;
        missed_.rows[row / 64] = with_missed ? all & ~took : 0;
    }
}

void ContestedRows::choose_all(ErasedBatch const& batch) noexcept {
    for_chunks(batch.chunks, [&](std::size_t, std::size_t begin, std::size_t end) {
        choose(batch, begin, end, true, true);
    });
}

/// Chooses rows that took an entry after an earlier chunk missed a key, and rows that missed their
/// key before a later chunk took an entry. False if there are none.
bool ContestedRows::choose_candidates(ErasedBatch const& batch) noexcept {
    auto const& chunks = batch.chunks;
    std::size_t first_missed = 0;
    while (first_missed < chunks.count &&
           batch.taken[first_missed] == chunks.end(first_missed) - chunks.begin(first_missed)) {
        ++first_missed;
    }
    std::size_t last_taken = chunks.count;
    while (last_taken > 0 && batch.taken[last_taken - 1] == 0) {
        --last_taken;
    }
    if (first_missed + 1 >= last_taken) {
        return false;
    }
    for_chunks(chunks, [&](std::size_t chunk, std::size_t begin, std::size_t end) {
        choose(batch, begin, end, chunk > first_missed, chunk + 1 < last_taken);
    });
    return true;
}

/// Keeps the chosen rows whose hash is that of a row of the other kind. Returns how many it keeps.
/// Another factor lets other pairs of different keys through.
std::uint64_t ContestedRows::keep_common(index::BucketIndex const& index, ErasedBatch const& batch,
                                         std::uint64_t factor) noexcept {
    std::uint64_t const second = factor * step::kGolden;
    std::atomic<std::uint64_t> kept{0};
    // Branches are rare: few rows of different keys stay.
    auto const keep_if = [&](Kind const& kind, std::uint32_t row, bool stays) {
        kind.rows[row / 64] &= ~(std::uint64_t{!stays} << (row % 64));
        if (stays) {
            kept.fetch_add(1, std::memory_order_relaxed);
        }
    };
    runtime::zero_bytes(reinterpret_cast<unsigned char*>(took_.filter), 2 * filter_bits(rows_) / 8);
    for_hashes(index, batch, missed_.rows, [&](std::uint32_t, std::uint64_t hash) {
        set_bit(missed_.filter, place(hash, factor));
    });
    for_hashes(index, batch, took_.rows, [&](std::uint32_t row, std::uint64_t hash) {
        bool const stays = has_bit(missed_.filter, place(hash, factor));
        keep_if(took_, row, stays);
        if (stays) {
            set_bit(took_.filter, place(hash, second));
        }
    });
    for_hashes(index, batch, missed_.rows, [&](std::uint32_t row, std::uint64_t hash) {
        keep_if(missed_, row, has_bit(took_.filter, place(hash, second)));
    });
    return kept.load(std::memory_order_relaxed);
}

bool ContestedRows::choose_missed(index::BucketIndex const& index,
                                  ErasedBatch const& batch) noexcept {
    if (!choose_candidates(batch)) {
        return false;
    }
    // Rows of different keys soon leave the choice. Those of one key stay, and then the count does
    // not fall any more.
    std::uint64_t factor = step::kGolden;
    std::uint64_t before = rows_;
    for (;;) {
        std::uint64_t const now = keep_common(index, batch, factor);
        if (now == 0 || now > before / 2) {
            return now != 0;
        }
        before = now;
        factor *= step::kGolden * step::kGolden;
    }
}

void ContestedRows::decide(index::BucketIndex& index, ErasedBatch const& batch) noexcept {
    auto const over_lists = [&](Kind const& kind, auto const& body) {
        for_chunks(batch.chunks, [&](std::size_t, std::size_t begin, std::size_t end) {
            for_lists(kind.rows, begin, end, body);
        });
    };
    auto const& [key_buffer, rows, chunks, taken] = batch;
    auto const release = [&](cpu::RowList const& list) {
        index.release_marked(key_buffer, rows, list);
    };
    over_lists(took_, [&](cpu::RowList const& list) { index.put_back(key_buffer, rows, list); });
    over_lists(missed_, [&](auto const& list) { index.find_put_back(key_buffer, rows, list); });
    over_lists(missed_, [&](cpu::RowList const& list) { index.mark(key_buffer, rows, list); });
    over_lists(took_, release);
    over_lists(missed_, release);
}

}  // namespace tensorhash::table
