// Erase in three steps: locate each key as find does, mark each slot with the earliest row that
// erases it, then release the slots.
#pragma once

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

/// Frees a slot. If no key probed past its bucket, the slot becomes empty: no probe needs to go on
/// from there. Otherwise it becomes erased, so that probes continue. Buckets 0 and 1 have no
/// overflow bits; there, an empty slot shows that no key probed past.
template <class Reader, class Access>
TH_STEP Released release(NarrowIndex<Reader, Access> const& index, Position position) {
    std::uint64_t const bucket = position >> 3;
    std::uint32_t const lane = position & 7;
    index.set_ticket(position, kNoTicket);
    if (lane == NarrowBucket::kSpareLane) {
        return Released::ToEmpty;
    }
    bool const to_empty = NarrowBucket::has_overflow_bits(bucket) ? index.overflow_bits(bucket) == 0
                                                                  : index.read(bucket).empty() != 0;
    Access::store(&index.buckets[bucket].words[lane],
                  to_empty ? NarrowBucket::kEmpty : NarrowBucket::kErased);
    return to_empty ? Released::ToEmpty : Released::ToErased;
}

template <class Reader, class Access>
TH_STEP Released release(WideIndex<Reader, Access> const& index, Position position) {
    bool const to_empty = index.overflow_bits(position >> 3) == 0;
    std::uint64_t const overflow = Access::load(index.slot_at(position)) & WideBucket::kOverflow;
    Access::store(index.slot_at(position),
                  to_empty ? WideBucket::kEmpty : WideBucket::kErased | overflow);
    return to_empty ? Released::ToEmpty : Released::ToErased;
}

/// Does the slot at the row's position still carry this row's ticket? A released slot does not.
template <class Index>
TH_STEP bool holds_claim(Index const& index, BatchView const& batch, std::size_t row) {
    return index.ticket(batch.positions[row]) ==
           to_ticket(batch.base + static_cast<std::uint32_t>(row));
}

}  // namespace TH_STEP_NAMESPACE
}  // namespace tensorhash::step
