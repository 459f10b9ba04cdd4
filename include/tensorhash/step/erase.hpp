// Erase. A device takes three steps: locate each key as find does, mark each slot with the earliest
// row that erases it, then release the slots. The CPU finds and releases in one visit, and puts
// back the few slots that rows on two threads may both have wanted (table/contested.hpp).
#pragma once

#include "tensorhash/step/find.hpp"
#include "tensorhash/step/insert.hpp"

namespace tensorhash::step {
inline namespace TH_STEP_NAMESPACE {

/// Does `row` beat the current owner of the slot? It beats the entry itself and all later rows.
TH_STEP bool outranks(BatchView const& batch, std::size_t row, Ticket seen) {
    std::uint32_t const buf_index = to_buf_index(seen);
    return buf_index < batch.base || buf_index - batch.base > row;
}

/// Marks the slot of the row's key with the row's ticket, unless an earlier row already has.
/// Relaxed order suffices: rows share only the ticket, and it is read after all rows have marked.
template <class Reader, class Access>
TH_STEP void mark(NarrowIndex<Reader, Access> const& index, BatchView const& batch,
                  std::size_t row) {
    Ticket const mine = to_ticket(batch.base + static_cast<std::uint32_t>(row));
    Ticket* const at = index.ticket_at(batch.positions[row]);
    Ticket seen = Access::load(at);
    while (outranks(batch, row, seen) && !Access::cas(at, seen, mine)) {
    }
}

template <class Reader, class Access>
TH_STEP void mark(WideIndex<Reader, Access> const& index, BatchView const& batch, std::size_t row) {
    Ticket const mine = to_ticket(batch.base + static_cast<std::uint32_t>(row));
    std::uint64_t* const at = index.slot_at(batch.positions[row]);
    std::uint64_t seen = Access::load(at);
    while (outranks(batch, row, slot_ticket(seen)) && !Access::cas(at, seen, to_slot(seen, mine))) {
    }
}

enum class Released : unsigned char { ToEmpty, ToErased };

/// Does the slot become empty when it is released, or erased? It becomes empty if no key probed
/// past its bucket: no probe needs to go on from there. Buckets 0 and 1 have no overflow bits;
/// there, an empty slot shows that no key probed past. The answer is the same before and after the
/// release.
template <class Reader, class Access>
TH_STEP bool becomes_empty(NarrowIndex<Reader, Access> const& index, Position position) {
    std::uint64_t const bucket = position >> 3;
    return (position & 7) == NarrowBucket::kSpareLane ||
           (NarrowBucket::has_overflow_bits(bucket) ? index.overflow_bits(bucket) == 0
                                                    : index.read(bucket).empty() != 0);
}

template <class Reader, class Access>
TH_STEP bool becomes_empty(WideIndex<Reader, Access> const& index, Position position) {
    return index.overflow_bits(position >> 3) == 0;
}

/// Frees a slot.
template <class Reader, class Access>
TH_STEP Released release(NarrowIndex<Reader, Access> const& index, Position position) {
    bool const to_empty = becomes_empty(index, position);
    index.set_ticket(position, kNoTicket);
    if ((position & 7) != NarrowBucket::kSpareLane) {
        Access::store(index.word_at(position),
                      to_empty ? NarrowBucket::kEmpty : NarrowBucket::kErased);
    }
    return to_empty ? Released::ToEmpty : Released::ToErased;
}

template <class Reader, class Access>
TH_STEP Released release(WideIndex<Reader, Access> const& index, Position position) {
    bool const to_empty = becomes_empty(index, position);
    std::uint64_t const overflow = Access::load(index.slot_at(position)) & WideBucket::kOverflow;
    Access::store(index.slot_at(position),
                  to_empty ? WideBucket::kEmpty : WideBucket::kErased | overflow);
    return to_empty ? Released::ToEmpty : Released::ToErased;
}

/// Undoes a release: the slot holds its key again, marked with the earliest row that released it.
/// `hash` is that of the entry's key.
template <class Reader, class Access>
TH_STEP void put_back(NarrowIndex<Reader, Access> const& index, std::uint64_t hash,
                      BatchView const& batch, std::size_t row) {
    Position const position = batch.positions[row];
    mark(index, batch, row);
    if ((position & 7) != NarrowBucket::kSpareLane) {
        Access::store(index.word_at(position), hash);
    }
}

template <class Reader, class Access>
TH_STEP void put_back(WideIndex<Reader, Access> const& index, std::uint64_t hash,
                      BatchView const& batch, std::size_t row) {
    Ticket const mine = to_ticket(batch.base + static_cast<std::uint32_t>(row));
    std::uint64_t* const at = index.slot_at(batch.positions[row]);
    std::uint64_t seen = Access::load(at);
    while (outranks(batch, row, slot_ticket(seen)) &&
           !Access::cas(at, seen, to_slot(hash, mine) | (seen & WideBucket::kOverflow))) {
    }
}

/// Finds the key of a row that found nothing among the slots that were put back. The row shares the
/// entry with the row that the slot is marked with. False if it is in no such slot.
template <class Index>
TH_STEP bool find_put_back(Index const& index, std::uint64_t hash, BatchView const& batch,
                           std::size_t row) {
    Match const at = find(index, hash, batch, row);
    if (at.buf_index < batch.base || at.buf_index >= kUndecided) {
        return false;
    }
    batch.positions[row] = at.position;
    batch.buf_indices[row] = batch.buf_indices[at.buf_index - batch.base];
    return true;
}

enum class Took : unsigned char {
    Entry,    // the row found its key and released the slot
    Nothing,  // the key is absent
    Unknown,  // nothing changed: the home bucket cannot decide
};

/// What became of one row that erases. Except for Took::Entry, only `took` counts.
struct Erased {
    Took took;
    Released released;
    Match match;
};
inline constexpr Erased kTookNothing{Took::Nothing, Released::ToEmpty, {kNotFound, 0}};

/// Finds a key and releases its slot. Other threads may do so too, even with the same key: then one
/// or more of them find it.
template <class Index>
TH_STEP Erased erase(Index const& index, std::uint64_t hash, BatchView const& batch,
                     std::size_t row) {
    Match const at = find(index, hash, batch, row);
    // If another thread released the slot before its ticket was read, that ticket is of no entry.
    if (at.buf_index >= kUndecided) {
        return kTookNothing;
    }
    return {Took::Entry, release(index, at.position), at};
}

/// The same from the home bucket alone.
template <class Reader, class Access>
TH_STEP Erased erase_at_home(NarrowIndex<Reader, Access> const& index, std::uint64_t hash,
                             std::uint64_t home) {
    constexpr Erased kUnknown{Took::Unknown, Released::ToEmpty, {kUndecided, 0}};
    if (!NarrowBucket::has_overflow_bits(home)) [[unlikely]] {
        return kUnknown;
    }
    NarrowBucket& bucket = index.buckets[home];
    std::uint32_t const lanes = index.read(home).with_word(hash);
    std::uint32_t const overflow = index.overflow_bits(home);
    if (lanes == 0) [[unlikely]] {
        bool const went_past = (overflow >> NarrowBucket::class_of(hash) & 1) != 0;
        return went_past ? kUnknown : kTookNothing;
    }
    std::uint32_t const lane = lowest_bit(lanes);
    Ticket const ticket = Access::load(&bucket.tickets[lane]);
    if (Access::kShared && ticket == kNoTicket) [[unlikely]] {
        return kTookNothing;  // another thread is releasing the slot
    }
    Access::store(&bucket.tickets[lane], kNoTicket);
    // No branch: it would be unpredictable which buckets have overflow bits.
    static_assert(NarrowBucket::kEmpty == 0 && NarrowBucket::kErased == 1);
    std::uint32_t const to_erased = unpredictable(overflow != 0 ? 1 : 0);
    Access::store(&bucket.words[lane], std::uint64_t{to_erased});
    return {Took::Entry,
            static_cast<Released>(to_erased),
            {to_buf_index(ticket), to_position(home, lane)}};
}

/// Does the slot at the row's position still carry this row's ticket? A released slot does not.
template <class Index>
TH_STEP bool holds_claim(Index const& index, BatchView const& batch, std::size_t row) {
    return index.ticket(batch.positions[row]) ==
           to_ticket(batch.base + static_cast<std::uint32_t>(row));
}

}  // namespace TH_STEP_NAMESPACE
}  // namespace tensorhash::step
