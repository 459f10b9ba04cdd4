// The index's memory: cache lines of slots, one layout for keys that fit in a word and one for wider keys.
#pragma once

#include "tensorhash/kernel/platform.hpp"

namespace tensorhash::kernel {
inline namespace TH_KERNEL_NAMESPACE {

// A slot's *ticket* is the complement of a number: of the entry's buffer index or, while a batch is under way, of
// base + row, where `base` is larger than every index in use. So memory that is all zero is an empty index, and of
// two claims on one key the earlier is the larger ticket: the winner is a maximum, whoever comes first.
using Ticket = std::uint32_t;

inline constexpr std::uint32_t kNoNumber =
    0xffffffffu;  // as int32: -1, what `find` gives for a missing key
inline constexpr Ticket kNoTicket = 0;

TH_STEP constexpr Ticket to_ticket(std::uint32_t number) { return ~number; }
TH_STEP constexpr std::uint32_t to_number(Ticket ticket) { return ~ticket; }

/// Where a slot is: eight positions a line, not all of them slots.
using Position = std::uint32_t;

TH_STEP constexpr Position to_position(std::uint64_t line, std::uint32_t lane) {
    return static_cast<Position>(line * 8 + lane);
}

/// Keys of up to eight bytes: the mixed word itself, so that a lookup ends in the line it started with.
struct alignas(64) NarrowLine {
    static constexpr std::uint32_t kLanes = 5;
    static constexpr std::uint64_t kEmpty = 0;
    static constexpr std::uint64_t kErased = 1;
    // The two keys whose mixed words are the marks above have no slot: their tickets are the spare ones of the
    // first two lines.
    static constexpr std::uint32_t kSideLane = 5;

    std::uint64_t words[kLanes];
    Ticket tickets[kLanes + 1];
};
static_assert(sizeof(NarrowLine) == 64);

/// Wider keys: a fingerprint (high half) and a ticket (low half); the key itself is in the key buffer, or in the batch
/// while its ticket is a row's. One word says all, so no slot is ever seen half written.
struct alignas(64) WideLine {
    static constexpr std::uint32_t kLanes = 8;
    static constexpr std::uint64_t kEmpty = 0;
    static constexpr std::uint64_t kErased =
        1;  // ticket 1 is number 2^32 - 2: above any index and any base + row

    std::uint64_t slots[kLanes];
};
static_assert(sizeof(WideLine) == 64);

/// A wide slot's word: the high half of the hash and a ticket.
TH_STEP constexpr std::uint64_t to_slot(std::uint64_t hash, Ticket ticket) {
    return (hash & 0xffffffff00000000ull) | ticket;
}
TH_STEP constexpr Ticket slot_ticket(std::uint64_t slot) { return static_cast<Ticket>(slot); }

}  // namespace TH_KERNEL_NAMESPACE
}  // namespace tensorhash::kernel
