// Find one row's key. Nobody writes meanwhile.
#pragma once

#include "tensorhash/step/probe.hpp"

namespace tensorhash::kernel {
inline namespace TH_KERNEL_NAMESPACE {

/// No answer. No buffer index is so large.
inline constexpr std::uint32_t kUndecided = kNoNumber - 1;

/// Where a key lives. The position means nothing if the number is kNoNumber or kUndecided.
struct Located {
    std::uint32_t number;
    Position position;
};

/// The number is kUndecided only if a bounded walk found no end: the index is broken.
template <class Index>
TH_STEP Located find(Index const& index, std::uint64_t hash, BatchView const& batch,
                     std::size_t row) {
    if (Index::is_side(hash)) {
        Position const side = Index::side_position(hash);
        return {to_number(index.ticket(side)), side};
    }
    Slot const slot = probe(index, hash, index.comparison(batch, row));
    if constexpr (kBoundedWalks) {
        if (slot.found == Found::Unknown) {
            return {kUndecided, 0};
        }
    }
    return {slot.found == Found::Key ? to_number(index.ticket(slot.position())) : kNoNumber,
            slot.position()};
}

/// The same from the home line alone: false if that does not tell.
template <class Reader>
TH_STEP bool find_at_home(NarrowIndex<Reader, Sole> const& index, std::uint64_t hash, Located& at) {
    std::uint64_t const line = hash & index.line_mask;
    auto const seen = index.read(line);
    std::uint32_t const found = seen.with_word(hash);
    // No branch on hit or miss: which of them it is nobody can predict.
    std::uint32_t const lane = lowest_bit(found | 1u << NarrowLine::kSpareLane);
    std::uint32_t const ticket_or_traces = index.lines[line].tickets[lane];
    std::uint32_t const missing = unpredictable(found == 0 ? kNoNumber : 0);
    at = {to_number(ticket_or_traces) | missing, to_position(line, lane)};
    if (!NarrowLine::keeps_traces(line)) [[unlikely]] {
        // Here the two keys without a slot are at home, too.
        return (found | seen.empty()) != 0 && !NarrowIndex<Reader, Sole>::is_side(hash);
    }
    return ((ticket_or_traces & missing) >> NarrowLine::class_of(hash) & 1) == 0;
}

/// First half of a wide lookup, from the fingerprints of the home line: the entry that may be the key, kNoNumber if
/// the key cannot be there, or kUndecided. What the second half will read is asked for.
template <class Reader>
TH_STEP Located foresee(WideIndex<Reader, Sole> const& index, std::uint64_t hash) {
    std::uint64_t const line = hash & index.line_mask;
    std::uint32_t const candidates = index.read_slots(line).with_fingerprint(hash);
    if (candidates == 0) {
        if (!index.has_trace(line, hash)) {
            return {kNoNumber, 0};
        }
        prefetch(&index.lines[(line + 1) & index.line_mask]);
        return {kUndecided, 0};
    }
    Position const position = to_position(line, lowest_bit(candidates));
    std::uint64_t const slot = *index.slot_at(position);
    if (!holds_key(slot)) {
        return {kUndecided, 0};
    }
    std::uint32_t const number = to_number(slot_ticket(slot));
    index.prefetch_key(index.key_buffer + number * index.reader.bytes());
    return {number, position};
}

/// Second half: is the guess the answer? If not, only `find` knows.
template <class Reader>
TH_STEP bool is_right(WideIndex<Reader, Sole> const& index, std::uint32_t guess,
                      BatchView const& batch, std::size_t row) {
    std::size_t const width = index.reader.bytes();
    return guess == kNoNumber ||
           (guess != kUndecided &&
            index.reader.equal(index.key_buffer + guess * width, batch.keys + row * width));
}

}  // namespace TH_KERNEL_NAMESPACE
}  // namespace tensorhash::kernel
