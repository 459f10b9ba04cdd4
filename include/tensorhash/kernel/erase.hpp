// Erase in two steps a row: mark the key's slot with the earliest row that wants it gone, then let that row release it.
#pragma once

#include "tensorhash/kernel/insert.hpp"

namespace tensorhash::kernel {
inline namespace TH_KERNEL_NAMESPACE {

/// One attempt to leave this row's ticket where `seen` is. Fills batch.numbers[row] with the entry's buffer index, or
/// with kNoNumber if an earlier row is there already. The index travels from row to row with the mark: it is written
/// before the exchange that publishes the ticket (release) and read after the ticket was seen (acquire).
TH_STEP bool inherit(BatchView const& batch, std::size_t row, Ticket seen) {
    std::uint32_t const number = to_number(seen);
    if (number < batch.base) {
        batch.numbers[row] = number;
        return true;
    }
    std::size_t const rival = number - batch.base;
    batch.numbers[row] = rival < row ? kNoNumber : batch.numbers[rival];
    return rival > row;
}

template <class Reader, class Access>
TH_STEP void mark(NarrowIndex<Reader, Access> const& index, Position position,
                  BatchView const& batch, std::size_t row) {
    Ticket const mine = to_ticket(batch.base + static_cast<std::uint32_t>(row));
    Ticket* at = index.ticket_at(position);
    Ticket seen = Access::load_acquire(at);  // pairs with the exchange below, in another row
    while (inherit(batch, row, seen) && !Access::cas_acq_rel(at, seen, mine)) {
    }
}

template <class Reader, class Access>
TH_STEP void mark(WideIndex<Reader, Access> const& index, Position position, BatchView const& batch,
                  std::size_t row) {
    Ticket const mine = to_ticket(batch.base + static_cast<std::uint32_t>(row));
    std::uint64_t* at = index.slot_at(position);
    std::uint64_t seen = Access::load_acquire(at);  // pairs with the exchange below, in another row
    while (inherit(batch, row, slot_ticket(seen)) &&
           !Access::cas_acq_rel(at, seen, to_slot(seen, mine))) {
    }
}

/// First step: finds the key and marks its slot. numbers[row] is the index to free, unless the key is missing or an
/// earlier row has it: then kNoNumber. False, with nothing done, if the walk may not go where the key would be.
template <class Index>
TH_STEP bool mark_for_erase(Index const& index, std::uint64_t hash, BatchView const& batch,
                            std::size_t row, Walk walk = Walk::All) {
    Slot slot{0, Found::Empty};
    if (Index::is_side(hash)) {
        slot.position = Index::side_position(hash);
        slot.found = index.ticket(slot.position) != kNoTicket ? Found::Key : Found::Empty;
    } else {
        slot = probe(index, hash, index.comparison(batch, row), walk);
    }
    if (slot.found == Found::Unknown) {
        return false;
    }
    if (slot.found == Found::Key) {
        batch.positions[row] = slot.position;
        mark(index, slot.position, batch, row);
    } else {
        batch.numbers[row] = kNoNumber;
    }
    return true;
}

enum class Released : unsigned char { ToEmpty, ToErased };

/// Frees a slot. In a line that has an empty slot no probe ever went on to the next line, so the slot becomes empty
/// too; only in a full line must it stay a stepping stone.
template <class Reader, class Access>
TH_STEP Released release(NarrowIndex<Reader, Access> const& index, Position position) {
    std::uint64_t const line = position >> 3;
    std::uint32_t const lane = position & 7;
    index.set_ticket(position, kNoTicket);
    if (lane == NarrowLine::kSideLane) {
        return Released::ToEmpty;
    }
    bool const to_empty = index.read(line).empty() != 0;
    Access::store(&index.lines[line].words[lane],
                  to_empty ? NarrowLine::kEmpty : NarrowLine::kErased);
    return to_empty ? Released::ToEmpty : Released::ToErased;
}

template <class Reader, class Access>
TH_STEP Released release(WideIndex<Reader, Access> const& index, Position position) {
    bool const to_empty = index.read(position >> 3).empty() != 0;
    Access::store(index.slot_at(position), to_empty ? WideLine::kEmpty : WideLine::kErased);
    return to_empty ? Released::ToEmpty : Released::ToErased;
}

/// Does the slot at the row's position carry this row's ticket? A slot released meanwhile carries nobody's.
template <class Index>
TH_STEP bool holds_claim(Index const& index, BatchView const& batch, std::size_t row) {
    return index.ticket(batch.positions[row]) ==
           to_ticket(batch.base + static_cast<std::uint32_t>(row));
}

}  // namespace TH_KERNEL_NAMESPACE
}  // namespace tensorhash::kernel
