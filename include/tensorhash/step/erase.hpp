// Erase: keys are located as by find; where a batch asks twice for one entry, the earliest row must have it; then slots are
// released.
#pragma once

#include "tensorhash/step/insert.hpp"

namespace tensorhash::kernel {
inline namespace TH_KERNEL_NAMESPACE {

/// Does row `row` take a slot from who has left this ticket, the entry itself or another row?
TH_STEP bool outranks(BatchView const& batch, std::size_t row, Ticket seen) {
    std::uint32_t const number = to_number(seen);
    return number < batch.base || number - batch.base > row;
}

/// Leaves the row's ticket at its key's slot unless an earlier row's is there. Relaxed orders: a ticket is all that rows
/// tell each other here, and who won is read when every row is through.
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

/// Frees a slot. In a line that no key went past the slot becomes empty: no walk beyond it would find anything. Else it
/// must stay a stepping stone. Where no traces are kept, a slot that is empty still tells that nobody did.
template <class Reader, class Access>
TH_STEP Released release(NarrowIndex<Reader, Access> const& index, Position position) {
    std::uint64_t const line = position >> 3;
    std::uint32_t const lane = position & 7;
    index.set_ticket(position, kNoTicket);
    if (lane == NarrowLine::kSpareLane) {
        return Released::ToEmpty;
    }
    bool const to_empty =
        NarrowLine::keeps_traces(line) ? index.traces(line) == 0 : index.read(line).empty() != 0;
    Access::store(&index.lines[line].words[lane],
                  to_empty ? NarrowLine::kEmpty : NarrowLine::kErased);
    return to_empty ? Released::ToEmpty : Released::ToErased;
}

template <class Reader, class Access>
TH_STEP Released release(WideIndex<Reader, Access> const& index, Position position) {
    bool const to_empty = index.traces(position >> 3) == 0;
    std::uint64_t const trace = Access::load(index.slot_at(position)) & WideLine::kTrace;
    Access::store(index.slot_at(position), to_empty ? WideLine::kEmpty : WideLine::kErased | trace);
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
