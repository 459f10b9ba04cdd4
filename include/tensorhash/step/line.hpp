// The index's memory: cache lines of slots, one layout for keys that fit in a word and one for wider keys.
#pragma once

#include "tensorhash/step/platform.hpp"

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

// A key whose home line is full goes on to the next line with room, and leaves a trace in every line that it goes past:
// that of its class, a few bits of its hash. So a key that is neither in its home line nor of a class that went past
// is nowhere, full as the line may be. Traces stay until the index is cleared or made anew.

/// Keys of up to eight bytes: the mixed word itself, so that a lookup ends in the line it started with.
struct alignas(64) NarrowLine {
    static constexpr std::uint32_t kLanes = 5;
    static constexpr std::uint64_t kEmpty = 0;
    static constexpr std::uint64_t kErased = 1;
    static constexpr std::uint32_t kSpareLane = 5;

    std::uint64_t words[kLanes];
    // The spare one has the traces of the classes that went past, except in the first two lines: the keys whose mixed words
    // are kEmpty and kErased have no slot, and their tickets are there.
    Ticket tickets[kLanes + 1];

    TH_STEP static constexpr bool keeps_traces(std::uint64_t line) { return line > kErased; }
    TH_STEP static constexpr std::uint32_t class_of(std::uint64_t hash) {
        return static_cast<std::uint32_t>(hash >> 59);
    }
};
static_assert(sizeof(NarrowLine) == 64);

/// Wider keys: a fingerprint (high half, but for its top bit) and a ticket (low half); the key itself is in the key
/// buffer, or in the batch while its ticket is a row's. One word says all, so no slot is ever seen half written.
struct alignas(64) WideLine {
    static constexpr std::uint32_t kLanes = 8;
    static constexpr std::uint64_t kEmpty = 0;
    static constexpr std::uint64_t kErased =
        1;  // ticket 1 is number 2^32 - 2: above any index and any base + row
    // A lane's top bit is no part of its slot (hashes have 63 bits) but a trace: keys of the lane's class went past.
    static constexpr std::uint64_t kTrace = std::uint64_t{1} << 63;

    std::uint64_t slots[kLanes];

    TH_STEP static constexpr std::uint32_t class_of(std::uint64_t hash) {
        return static_cast<std::uint32_t>(hash >> 60);
    }
};
static_assert(sizeof(WideLine) == 64);

/// A wide slot's word: the high half of a hash, or of what the slot was before, and a ticket.
TH_STEP constexpr std::uint64_t to_slot(std::uint64_t high, Ticket ticket) {
    return (high & 0xffffffff00000000ull) | ticket;
}
TH_STEP constexpr Ticket slot_ticket(std::uint64_t slot) { return static_cast<Ticket>(slot); }
TH_STEP constexpr bool same_fingerprint(std::uint64_t slot, std::uint64_t hash) {
    return (slot ^ hash) << 1 >> 33 == 0;
}
/// Neither empty nor erased.
TH_STEP constexpr bool holds_key(std::uint64_t slot) { return slot << 1 > WideLine::kErased << 1; }

}  // namespace TH_KERNEL_NAMESPACE
}  // namespace tensorhash::kernel
