// Finds the key of one row. No thread may write to the index meanwhile, unless Access is Shared.
#pragma once

#include "tensorhash/step/probe.hpp"

namespace tensorhash::step {
inline namespace TH_STEP_NAMESPACE {

/// Not decided yet. No buffer index is this large.
inline constexpr std::uint32_t kUndecided = kNotFound - 1;

/// Where a key is. `position` is meaningless if `buf_index` is kNotFound or kUndecided.
struct Match {
    std::uint32_t buf_index;
    Position position;
};

/// Returns kUndecided only if a bounded probe found no end: the index is corrupt.
template <class Index>
TH_STEP Match find(Index const& index, std::uint64_t hash, BatchView const& batch,
                   std::size_t row) {
    if (Index::is_side(hash)) {
        Position const side = Index::side_position(hash);
        return {to_buf_index(index.ticket(side)), side};
    }
    Slot const slot = probe(index, hash, index.home(hash), index.comparison(batch, row));
    if constexpr (kBoundedProbes) {
        if (slot.found == Found::Unknown) {
            return {kUndecided, 0};
        }
    }
    return {slot.found == Found::Key ? to_buf_index(index.ticket(slot.position())) : kNotFound,
            slot.position()};
}

/// The same from the home bucket alone. Returns false if that bucket cannot decide.
template <class Reader>
TH_STEP bool find_at_home(NarrowIndex<Reader, Exclusive> const& index, std::uint64_t hash,
                          std::uint64_t bucket, Match& at) {
    auto const seen = index.read(bucket);
    std::uint32_t const found = seen.with_word(hash);
    // No branch on hit or miss: it would be unpredictable.
    std::uint32_t const lane = lowest_bit(found | 1u << NarrowBucket::kSpareLane);
    std::uint32_t const ticket_or_overflow = index.buckets[bucket].tickets[lane];
    std::uint32_t const missing = unpredictable(found == 0 ? kNotFound : 0);
    at = {to_buf_index(ticket_or_overflow) | missing, to_position(bucket, lane)};
    if (!NarrowBucket::has_overflow_bits(bucket)) [[unlikely]] {
        // The two keys without a slot also have their home here.
        return (found | seen.empty()) != 0 && !NarrowIndex<Reader, Exclusive>::is_side(hash);
    }
    return ((ticket_or_overflow & missing) >> NarrowBucket::class_of(hash) & 1) == 0;
}

/// First half of a wide lookup. Reads only the home bucket's fingerprints and returns a candidate
/// entry, kNotFound if the key is not in the table, or kUndecided. Prefetches what the second half
/// will read.
template <class Reader, class Access>
TH_STEP Match guess(WideIndex<Reader, Access> const& index, std::uint64_t hash,
                    std::uint64_t bucket) {
    std::uint32_t const candidates = index.read_slots(bucket).with_fingerprint(hash);
    if (candidates == 0) {
        if (!index.has_overflow(bucket, hash)) {
            return {kNotFound, 0};
        }
        prefetch(&index.buckets[next_bucket(index, bucket)]);
        return {kUndecided, 0};
    }
    Position const position = to_position(bucket, lowest_bit(candidates));
    std::uint64_t const slot = Access::load(index.slot_at(position));
    if (!holds_key(slot)) {
        return {kUndecided, 0};
    }
    std::uint32_t const buf_index = to_buf_index(slot_ticket(slot));
    index.prefetch_key(index.key_buffer + buf_index * index.reader.bytes());
    return {buf_index, position};
}

/// Second half: is the guess right? If not, call `find`.
template <class Reader, class Access>
TH_STEP bool confirm(WideIndex<Reader, Access> const& index, std::uint32_t guess,
                     BatchView const& batch, std::size_t row) {
    std::size_t const width = index.reader.bytes();
    return guess == kNotFound ||
           (guess != kUndecided &&
            index.reader.equal(index.key_buffer + guess * width, batch.keys + row * width));
}

/// find(), for code that takes one row at a time. Most lookups end in their home bucket.
template <class Reader>
TH_STEP Match find_one(NarrowIndex<Reader, Exclusive> const& index, std::uint64_t hash,
                       BatchView const& batch, std::size_t row) {
    Match at;
    return find_at_home(index, hash, index.home(hash), at) ? at : find(index, hash, batch, row);
}
template <class Reader>
TH_STEP Match find_one(WideIndex<Reader, Exclusive> const& index, std::uint64_t hash,
                       BatchView const& batch, std::size_t row) {
    Match const at = guess(index, hash, index.home(hash));
    return confirm(index, at.buf_index, batch, row) ? at : find(index, hash, batch, row);
}

}  // namespace TH_STEP_NAMESPACE
}  // namespace tensorhash::step
