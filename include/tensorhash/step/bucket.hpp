// Memory layout of the index: 64-byte buckets of slots. One layout is for keys that fit in a word,
// the other for wider keys.
#pragma once

#include "tensorhash/step/platform.hpp"

namespace tensorhash::step {
inline namespace TH_STEP_NAMESPACE {

// A slot's *ticket* is the complement of its entry's buffer index. While a batch runs, it can also
// be the complement of base + row, where `base` is above every buffer index in use. So zeroed
// memory is an empty index, and of two claims on one key the earlier row has the larger ticket. The
// winner is the maximum, whichever thread comes first.
using Ticket = std::uint32_t;

inline constexpr std::uint32_t kNotFound = 0xffffffffu;  // -1 as int32
inline constexpr Ticket kNoTicket = 0;

TH_STEP constexpr Ticket to_ticket(std::uint32_t buf_index) { return ~buf_index; }
TH_STEP constexpr std::uint32_t to_buf_index(Ticket ticket) { return ~ticket; }

/// Where a slot is: bucket * 8 + lane. Not every position is a slot.
using Position = std::uint32_t;

TH_STEP constexpr Position to_position(std::uint64_t bucket, std::uint32_t lane) {
    return static_cast<Position>(bucket * 8 + lane);
}

/// The home bucket of a hash, from 32 of its bits: the high half of their product with the number
/// of buckets. So an index can have any number of buckets. A larger `bits` never has an earlier
/// home: the entries of a bucket go to adjacent buckets of a larger index. 32 bits are enough for
/// 2^29 buckets, and their product needs no 128-bit arithmetic.
TH_STEP constexpr std::uint64_t home_of(std::uint32_t bits, std::uint64_t bucket_count) {
    return bits * bucket_count >> 32;
}

// A key that finds its home bucket full goes on to the next bucket with room. In every bucket that
// it probes past, it sets the overflow bit of its class, which is a few bits of its hash. So a key
// is not in the table if it is not in its home bucket and the overflow bit of its class is clear
// there, even if the bucket is full. Overflow bits stay until the index is cleared or rebuilt.

/// Keys of up to eight bytes. A slot holds the mixed key itself, so a lookup does not read the key
/// buffer.
struct alignas(64) NarrowBucket {
    static constexpr std::uint32_t kLanes = 5;
    static constexpr std::uint64_t kEmpty = 0;
    static constexpr std::uint64_t kErased = 1;
    static constexpr std::uint32_t kSpareLane = 5;

    std::uint64_t words[kLanes];
    // The spare ticket holds the overflow bits, one per class. In buckets 0 and 1 it is a real
    // ticket instead: that of the key that mixes to kEmpty or kErased, which has no slot.
    Ticket tickets[kLanes + 1];

    TH_STEP static constexpr bool has_overflow_bits(std::uint64_t bucket) {
        return bucket > kErased;
    }
    // The home comes from the high half of the mixed key and the class from its low bits, so that
    // the keys of one bucket have all classes.
    TH_STEP static constexpr std::uint64_t home(std::uint64_t hash, std::uint64_t bucket_count) {
        return home_of(static_cast<std::uint32_t>(hash >> 32), bucket_count);
    }
    TH_STEP static constexpr std::uint32_t class_of(std::uint64_t hash) {
        return static_cast<std::uint32_t>(hash) & 31;
    }
};
static_assert(sizeof(NarrowBucket) == 64);

/// Wider keys. A slot is a fingerprint (high half, without the top bit) and a ticket (low half).
/// The key itself is in the key buffer, or in the batch while the ticket is a row's. A slot is one
/// word, so no thread sees it half written.
struct alignas(64) WideBucket {
    static constexpr std::uint32_t kLanes = 8;
    static constexpr std::uint64_t kEmpty = 0;
    // Ticket 1 is buffer index 2^32 - 2, which is above every index and every base + row.
    static constexpr std::uint64_t kErased = 1;
    // The top bit of lane c is the overflow bit of class c. It is not part of the slot: hashes have
    // 63 bits.
    static constexpr std::uint64_t kOverflow = std::uint64_t{1} << 63;

    std::uint64_t slots[kLanes];

    // The home comes from the low half of the hash, fingerprint and class from the high half.
    TH_STEP static constexpr std::uint64_t home(std::uint64_t hash, std::uint64_t bucket_count) {
        return home_of(static_cast<std::uint32_t>(hash), bucket_count);
    }
    TH_STEP static constexpr std::uint32_t class_of(std::uint64_t hash) {
        return static_cast<std::uint32_t>(hash >> 60);
    }
};
static_assert(sizeof(WideBucket) == 64);

/// A wide slot's word: the high half of a hash or of an older slot word, and a ticket.
TH_STEP constexpr std::uint64_t to_slot(std::uint64_t high, Ticket ticket) {
    return (high & 0xffffffff00000000ull) | ticket;
}
TH_STEP constexpr Ticket slot_ticket(std::uint64_t slot) { return static_cast<Ticket>(slot); }
TH_STEP constexpr bool same_fingerprint(std::uint64_t slot, std::uint64_t hash) {
    return (slot ^ hash) << 1 >> 33 == 0;
}
/// Neither empty nor erased.
TH_STEP constexpr bool holds_key(std::uint64_t slot) {
    return slot << 1 > WideBucket::kErased << 1;
}

}  // namespace TH_STEP_NAMESPACE
}  // namespace tensorhash::step
