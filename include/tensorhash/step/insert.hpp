// Insert in three steps per row: claim a slot, settle which row won it, publish the winner's buffer
// index.
//
// Every row puts its ticket (base + row) on its key's slot, and the earliest row's ticket stays. If
// every row of a batch claimed a slot of its own, base + row is already the final buffer index.
// Otherwise the back end ranks the winners with a scan between `settle` and `publish`.
#pragma once

#include "tensorhash/step/find.hpp"

namespace tensorhash::step {
inline namespace TH_STEP_NAMESPACE {

enum class Claimed : unsigned char {
    Nothing,    // the key already has a slot
    Overtook,   // the same, and a later row of the batch had it until now
    Empty,      // took an empty slot
    Erased,     // took an erased slot
    Undecided,  // the key's slot has no ticket yet: call `join_late` when all claims are over
    Beyond,     // nothing changed: the probe ended before it found a slot
};

struct Claim {
    Position position;
    std::uint32_t buf_index;  // of the slot now: an entry's, or base + the earliest row so far
    Claimed claimed;
    std::uint32_t overtaken = kNotFound;  // if Overtook: base + that row
};

/// The claim of a row that met the ticket `seen` on its key's slot. The larger ticket stays.
TH_STEP Claim joined(Position position, Ticket seen, Ticket mine) {
    bool const is_mine = seen < mine;
    return {position, to_buf_index(is_mine ? mine : seen),
            is_mine ? Claimed::Overtook : Claimed::Nothing,
            is_mine ? to_buf_index(seen) : kNotFound};
}

template <class Reader, class Access>
TH_STEP Claim claim(NarrowIndex<Reader, Access> const& index, std::uint64_t hash,
                    std::uint64_t home, BatchView const& batch, std::size_t row,
                    ProbeRange range = ProbeRange::All) {
    using Index = NarrowIndex<Reader, Access>;
    Ticket const mine = to_ticket(batch.base + static_cast<std::uint32_t>(row));
    if (Index::is_side(hash)) {
        Position const side = Index::side_position(hash);
        Ticket const seen = Access::raise(index.ticket_at(side), mine);
        return seen == kNoTicket ? Claim{side, to_buf_index(mine), Claimed::Empty}
                                 : joined(side, seen, mine);
    }
    for (;;) {
        Slot const slot = probe(index, hash, home, {}, range);
        if (slot.found == Found::Unknown) {
            return {0, 0, Claimed::Beyond};
        }
        if (slot.found != Found::Key) {
            std::uint64_t* word = &index.buckets[slot.bucket].words[slot.lane];
            std::uint64_t expected =
                slot.found == Found::Erased ? NarrowBucket::kErased : NarrowBucket::kEmpty;
            if (Access::cas(word, expected, hash)) {
                // The first ticket is a plain store, at half the cost of a CAS. That is safe: other
                // rows leave the ticket alone until they see it.
                Access::store(&index.buckets[slot.bucket].tickets[slot.lane], mine);
                mark_overflow(index, hash, home, slot.bucket);
                return {slot.position(), to_buf_index(mine),
                        slot.found == Found::Erased ? Claimed::Erased : Claimed::Empty};
            }
            if (expected != hash) {
                continue;  // another key took the slot: probe again
            }
        }
        Ticket* const ticket = &index.buckets[slot.bucket].tickets[slot.lane];
        if (Access::kShared && Access::load(ticket) == kNoTicket) {
            // The row that claimed the slot has not stored its ticket yet. Do not wait for it.
            return {slot.position(), to_buf_index(mine), Claimed::Undecided};
        }
        return joined(slot.position(), Access::raise(ticket, mine), mine);
    }
}

template <class Reader, class Access>
TH_STEP Claim claim(WideIndex<Reader, Access> const& index, std::uint64_t hash, std::uint64_t home,
                    BatchView const& batch, std::size_t row, ProbeRange range = ProbeRange::All) {
    Ticket const mine = to_ticket(batch.base + static_cast<std::uint32_t>(row));
    auto const comparison = index.comparison(batch, row);
    for (;;) {
        Slot const slot = probe(index, hash, home, comparison, range);
        if (slot.found == Found::Unknown) {
            return {0, 0, Claimed::Beyond};
        }
        std::uint64_t* at = &index.buckets[slot.bucket].slots[slot.lane];
        if (slot.found != Found::Key) {
            std::uint64_t expected = WideBucket::kEmpty;
            if (slot.found == Found::Erased) {
                expected = WideBucket::kErased | (Access::load(at) & WideBucket::kOverflow);
            }
            if (Access::cas(at, expected,
                            to_slot(hash, mine) | (expected & WideBucket::kOverflow))) {
                mark_overflow(index, hash, home, slot.bucket);
                return {slot.position(), to_buf_index(mine),
                        slot.found == Found::Erased ? Claimed::Erased : Claimed::Empty};
            }
            continue;  // taken meanwhile, perhaps by the same key: probe again
        }
        std::uint64_t seen = Access::load(at);
        while (slot_ticket(seen) < mine && !Access::cas(at, seen, to_slot(seen, mine))) {
        }
        return joined(slot.position(), slot_ticket(seen), mine);
    }
}

/// For code that takes one row at a time.
template <class Index>
TH_STEP Claim claim(Index const& index, std::uint64_t hash, BatchView const& batch,
                    std::size_t row) {
    return claim(index, hash, index.home(hash), batch, row);
}

/// For undecided rows, when all claims are over: every slot has its first ticket now. Rows that
/// have already joined also pass the test; joining again changes nothing. Returns what
/// `Claim::overtaken` is.
template <class Reader>
TH_STEP std::uint32_t join_late(NarrowIndex<Reader, Shared> const& index, BatchView const& batch,
                                std::size_t row) {
    if (batch.mask[row] != 0 || batch.buf_indices[row] < batch.base) {
        return kNotFound;
    }
    Ticket const mine = to_ticket(batch.base + static_cast<std::uint32_t>(row));
    Position const position = batch.positions[row];
    return joined(position, Shared::raise(index.ticket_at(position), mine), mine).overtaken;
}

/// A wide slot and its ticket are claimed with one CAS, so no row is ever undecided.
template <class Reader>
TH_STEP std::uint32_t join_late(WideIndex<Reader, Shared> const&, BatchView const&, std::size_t) {
    return kNotFound;
}

/// For wide keys that are probably in the table: the candidate of a key's home bucket, or
/// base + `row` if there is none, or if it is not earlier than the row. Prefetches the candidate's
/// key. The bucket itself must already be in the cache. No branch: it would be unpredictable.
template <class Reader, class Access>
TH_STEP Match earlier_candidate(WideIndex<Reader, Access> const& index, std::uint64_t hash,
                                std::uint64_t bucket, BatchView const& batch, std::size_t row) {
    std::uint32_t const candidates = index.read(bucket).with_fingerprint(hash);
    std::uint32_t const lane = lowest_bit(candidates | 1u << (WideBucket::kLanes - 1));
    std::uint64_t const slot = Access::load(&index.buckets[bucket].slots[lane]);
    std::uint32_t const mine = batch.base + static_cast<std::uint32_t>(row);
    bool const is_one = (candidates != 0) & holds_key(slot) & (slot_ticket(slot) > to_ticket(mine));
    std::uint32_t const buf_index = unpredictable(is_one ? to_buf_index(slot_ticket(slot)) : mine);
    index.prefetch_key(index.key_of(to_ticket(buf_index), index.comparison(batch, row)));
    return {buf_index, to_position(bucket, lane)};
}

/// Does the candidate hold the row's key? A ticket only ever gets larger, so the row has then lost
/// to the candidate or to an earlier row.
template <class Reader, class Access>
TH_STEP bool is_candidate(WideIndex<Reader, Access> const& index, std::uint32_t buf_index,
                          BatchView const& batch, std::size_t row) {
    auto const comparison = index.comparison(batch, row);
    return index.reader.equal(index.key_of(to_ticket(buf_index), comparison), comparison.wanted);
}

/// After all claims: did this row win its key's slot? A row that lost gets the winner's base + row.
template <class Index>
TH_STEP bool settle(Index const& index, BatchView const& batch, std::size_t row) {
    if (batch.buf_indices[row] < batch.base) {
        batch.mask[row] = 0;
        return false;
    }
    std::uint32_t const winner = to_buf_index(index.ticket(batch.positions[row]));
    bool const won = winner == batch.base + static_cast<std::uint32_t>(row);
    batch.buf_indices[row] = winner;
    batch.mask[row] = won ? 1 : 0;
    return won;
}

/// Writes the winner's buffer index to its slot and to its row's result.
template <class Index>
TH_STEP void publish(Index const& index, BatchView const& batch, std::size_t row,
                     std::uint32_t buf_index) {
    index.set_ticket(batch.positions[row], to_ticket(buf_index));
    batch.buf_indices[row] = buf_index;
}

/// Puts an entry that is known to be absent into the index; used to rebuild an index. Returns false
/// and changes nothing if there is no empty slot within `range`.
template <class Reader, class Access>
TH_STEP bool place(NarrowIndex<Reader, Access> const& index, std::uint64_t hash, std::uint64_t home,
                   std::uint32_t buf_index, ProbeRange range = ProbeRange::All) {
    using Index = NarrowIndex<Reader, Access>;
    if (Index::is_side(hash)) {
        index.set_ticket(Index::side_position(hash), to_ticket(buf_index));
        return true;
    }
    std::uint64_t bucket = home;
    do {
        for (std::uint32_t empty = index.read(bucket).empty(); empty != 0; empty &= empty - 1) {
            std::uint32_t const lane = lowest_bit(empty);
            std::uint64_t expected = NarrowBucket::kEmpty;
            if (Access::cas(&index.buckets[bucket].words[lane], expected, hash)) {
                index.set_ticket(to_position(bucket, lane), to_ticket(buf_index));
                mark_overflow(index, hash, home, bucket);
                return true;
            }
        }
        bucket = next_bucket(index, bucket);
    } while (range == ProbeRange::All && !(kBoundedProbes && bucket == home));
    return false;
}

template <class Reader, class Access>
TH_STEP bool place(WideIndex<Reader, Access> const& index, std::uint64_t hash, std::uint64_t home,
                   std::uint32_t buf_index, ProbeRange range = ProbeRange::All) {
    std::uint64_t bucket = home;
    do {
        for (std::uint32_t empty = index.read(bucket).empty(); empty != 0; empty &= empty - 1) {
            std::uint64_t expected = WideBucket::kEmpty;
            if (Access::cas(&index.buckets[bucket].slots[lowest_bit(empty)], expected,
                            to_slot(hash, to_ticket(buf_index)))) {
                mark_overflow(index, hash, home, bucket);
                return true;
            }
        }
        bucket = next_bucket(index, bucket);
    } while (range == ProbeRange::All && !(kBoundedProbes && bucket == home));
    return false;
}

/// For code that takes one row at a time.
template <class Index>
TH_STEP bool place(Index const& index, std::uint64_t hash, std::uint32_t buf_index) {
    return place(index, hash, index.home(hash), buf_index);
}

}  // namespace TH_STEP_NAMESPACE
}  // namespace tensorhash::step
