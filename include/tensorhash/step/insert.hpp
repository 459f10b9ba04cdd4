// Insert in three steps a row: claim a slot, settle who won it, publish the winner's buffer index.
//
// Every row leaves its ticket (base + row) at its key's slot, and the earliest row's stays. If every row of a batch
// claimed a slot of its own, base + row is the final index and nothing is left to do; else the winners are numbered by
// a scan between `settle` and `publish`, which is the back end's.
#pragma once

#include "tensorhash/step/probe.hpp"

namespace tensorhash::kernel {
inline namespace TH_KERNEL_NAMESPACE {

enum class Claimed : unsigned char {
    Nothing,    // the key has a slot already
    Empty,      // took an empty slot
    Erased,     // took an erased one
    Undecided,  // the key's slot has no ticket yet: the row must `join_late` when all claims are over
    Beyond,     // nothing happened: the walk ended before it found a slot
};

struct Claim {
    Position position;
    std::uint32_t
        number;  // what the slot said last: an index below base, or base + the earliest row seen so far
    Claimed claimed;
};

/// Leaves `mine` at a ticket unless an earlier claim or an entry is there; returns what stays.
template <class Access>
TH_STEP Ticket join(Ticket* at, Ticket mine, bool& was_free) {
    Ticket const seen = Access::raise(at, mine);
    was_free = seen == kNoTicket;
    return seen < mine ? mine : seen;
}

template <class Reader, class Access>
TH_STEP Claim claim(NarrowIndex<Reader, Access> const& index, std::uint64_t hash,
                    BatchView const& batch, std::size_t row, Walk walk = Walk::All) {
    using Index = NarrowIndex<Reader, Access>;
    Ticket const mine = to_ticket(batch.base + static_cast<std::uint32_t>(row));
    if (Index::is_side(hash)) {
        Position const side = Index::side_position(hash);
        bool was_free = false;
        Ticket const stays = join<Access>(index.ticket_at(side), mine, was_free);
        return {side, to_number(stays), was_free ? Claimed::Empty : Claimed::Nothing};
    }
    for (;;) {
        Slot const slot = probe(index, hash, {}, walk);
        if (slot.found == Found::Unknown) {
            return {0, 0, Claimed::Beyond};
        }
        if (slot.found != Found::Key) {
            std::uint64_t* word = &index.lines[slot.line].words[slot.lane];
            std::uint64_t expected =
                slot.found == Found::Erased ? NarrowLine::kErased : NarrowLine::kEmpty;
            if (Access::cas(word, expected, hash)) {
                // The first ticket is a plain store, half the price of an exchange: others join only what they can see.
                Access::store(&index.lines[slot.line].tickets[slot.lane], mine);
                leave_traces(index, hash, slot.line);
                return {slot.position(), to_number(mine),
                        slot.found == Found::Erased ? Claimed::Erased : Claimed::Empty};
            }
            if (expected != hash) {
                continue;  // another key took the slot: look again
            }
        }
        Ticket* const ticket = &index.lines[slot.line].tickets[slot.lane];
        if (Access::kShared && Access::load(ticket) == kNoTicket) {
            return {slot.position(), to_number(mine),
                    Claimed::Undecided};  // nobody waits for a store
        }
        bool was_free = false;
        Ticket const stays = join<Access>(ticket, mine, was_free);
        return {slot.position(), to_number(stays), Claimed::Nothing};
    }
}

template <class Reader, class Access>
TH_STEP Claim claim(WideIndex<Reader, Access> const& index, std::uint64_t hash,
                    BatchView const& batch, std::size_t row, Walk walk = Walk::All) {
    Ticket const mine = to_ticket(batch.base + static_cast<std::uint32_t>(row));
    auto const comparison = index.comparison(batch, row);
    for (;;) {
        Slot const slot = probe(index, hash, comparison, walk);
        if (slot.found == Found::Unknown) {
            return {0, 0, Claimed::Beyond};
        }
        std::uint64_t* at = &index.lines[slot.line].slots[slot.lane];
        if (slot.found != Found::Key) {
            std::uint64_t expected = WideLine::kEmpty;
            if (slot.found == Found::Erased) {
                expected = WideLine::kErased | (Access::load(at) & WideLine::kTrace);
            }
            if (Access::cas(at, expected, to_slot(hash, mine) | (expected & WideLine::kTrace))) {
                leave_traces(index, hash, slot.line);
                return {slot.position(), to_number(mine),
                        slot.found == Found::Erased ? Claimed::Erased : Claimed::Empty};
            }
            continue;  // taken meanwhile, perhaps by this very key: look again
        }
        std::uint64_t seen = Access::load(at);
        while (slot_ticket(seen) < mine) {
            if (Access::cas(at, seen, to_slot(seen, mine))) {
                seen = to_slot(seen, mine);
            }
        }
        return {slot.position(), to_number(slot_ticket(seen)), Claimed::Nothing};
    }
}

/// For rows that were undecided, when no claim is under way any more: every slot has its first ticket now. Harmless for
/// other rows that hold a number of this batch.
template <class Reader>
TH_STEP void join_late(NarrowIndex<Reader, Shared> const& index, BatchView const& batch,
                       std::size_t row) {
    if (batch.mask[row] == 0 && batch.numbers[row] >= batch.base) {
        Ticket const mine = to_ticket(batch.base + static_cast<std::uint32_t>(row));
        bool was_free = false;
        join<Shared>(index.ticket_at(batch.positions[row]), mine, was_free);
    }
}

/// A wide slot is claimed with its ticket in one exchange: no row is ever undecided.
template <class Reader>
TH_STEP void join_late(WideIndex<Reader, Shared> const&, BatchView const&, std::size_t) {}

/// After all claims: is this row the one that its key's slot belongs to? Rows that lost learn who won.
template <class Index>
TH_STEP bool settle(Index const& index, BatchView const& batch, std::size_t row) {
    if (batch.numbers[row] < batch.base) {
        batch.mask[row] = 0;
        return false;
    }
    std::uint32_t const winner = to_number(index.ticket(batch.positions[row]));
    bool const won = winner == batch.base + static_cast<std::uint32_t>(row);
    batch.numbers[row] = winner;
    batch.mask[row] = won ? 1 : 0;
    return won;
}

/// The winner's buffer index, into its slot and its row's answer.
template <class Index>
TH_STEP void publish(Index const& index, BatchView const& batch, std::size_t row,
                     std::uint32_t number) {
    index.set_ticket(batch.positions[row], to_ticket(number));
    batch.numbers[row] = number;
}

/// Puts an entry that is known to be absent into the index: how an index is rebuilt. False, with nothing done, if it
/// does not fit where the walk may go.
template <class Reader, class Access>
TH_STEP bool place(NarrowIndex<Reader, Access> const& index, std::uint64_t hash,
                   std::uint32_t number, Walk walk = Walk::All) {
    using Index = NarrowIndex<Reader, Access>;
    if (Index::is_side(hash)) {
        index.set_ticket(Index::side_position(hash), to_ticket(number));
        return true;
    }
    std::uint64_t const home = hash & index.line_mask;
    std::uint64_t line = home;
    do {
        for (std::uint32_t empty = index.read(line).empty(); empty != 0; empty &= empty - 1) {
            std::uint32_t const lane = lowest_bit(empty);
            std::uint64_t expected = NarrowLine::kEmpty;
            if (Access::cas(&index.lines[line].words[lane], expected, hash)) {
                index.set_ticket(to_position(line, lane), to_ticket(number));
                leave_traces(index, hash, line);
                return true;
            }
        }
        line = (line + 1) & index.line_mask;
    } while (walk == Walk::All && !(kBoundedWalks && line == home));
    return false;
}

template <class Reader, class Access>
TH_STEP bool place(WideIndex<Reader, Access> const& index, std::uint64_t hash, std::uint32_t number,
                   Walk walk = Walk::All) {
    std::uint64_t const home = hash & index.line_mask;
    std::uint64_t line = home;
    do {
        for (std::uint32_t empty = index.read(line).empty(); empty != 0; empty &= empty - 1) {
            std::uint64_t expected = WideLine::kEmpty;
            if (Access::cas(&index.lines[line].slots[lowest_bit(empty)], expected,
                            to_slot(hash, to_ticket(number)))) {
                leave_traces(index, hash, line);
                return true;
            }
        }
        line = (line + 1) & index.line_mask;
    } while (walk == Walk::All && !(kBoundedWalks && line == home));
    return false;
}

}  // namespace TH_KERNEL_NAMESPACE
}  // namespace tensorhash::kernel
