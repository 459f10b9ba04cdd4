// The probe loop over buckets, and the two index layouts that it runs on.
#pragma once

#include "tensorhash/step/hash.hpp"
#include "tensorhash/step/key.hpp"
#include "tensorhash/step/snapshot.hpp"
#include "tensorhash/step/view.hpp"

namespace tensorhash::step {
inline namespace TH_STEP_NAMESPACE {

/// Mixed keys in slots. `Reader` is one of the Narrow readers of key.hpp.
template <class Reader, class Access>
struct NarrowIndex {
    using Snapshot = NarrowSnapshot<Access>;
    NarrowBucket* buckets;
    std::uint64_t bucket_count;
    HashSecret secret;
    Reader reader;

    TH_STEP explicit NarrowIndex(IndexView const& view)
        : buckets(static_cast<NarrowBucket*>(view.buckets)), bucket_count(view.bucket_count),
          secret(view.secret), reader(KeyFormat{view.key_bytes, view.float_bytes}) {}

    TH_STEP std::uint64_t hash(unsigned char const* keys, std::size_t row) const {
        return mix(reader.word(keys, row), secret);
    }
    TH_STEP std::uint64_t home(std::uint64_t hash) const {
        return NarrowBucket::home(hash, bucket_count);
    }
    TH_STEP Snapshot read(std::uint64_t bucket) const { return Snapshot(buckets[bucket]); }
    TH_STEP Snapshot read_slots(std::uint64_t bucket) const { return read(bucket); }

    /// Does the key mix to the empty or erased mark? Then it has no slot, only the spare ticket of
    /// bucket 0 or 1.
    TH_STEP static bool is_side(std::uint64_t hash) { return hash <= NarrowBucket::kErased; }
    TH_STEP static Position side_position(std::uint64_t hash) {
        return to_position(hash, NarrowBucket::kSpareLane);
    }

    /// The overflow bits of a bucket, one per class. Only if has_overflow_bits(bucket).
    TH_STEP std::uint32_t overflow_bits(std::uint64_t bucket) const {
        return Access::load(&buckets[bucket].tickets[NarrowBucket::kSpareLane]);
    }
    TH_STEP void mark_overflow(std::uint64_t bucket, std::uint64_t hash) const {
        if (NarrowBucket::has_overflow_bits(bucket)) {
            set_bits<Access>(&buckets[bucket].tickets[NarrowBucket::kSpareLane],
                             std::uint32_t{1} << NarrowBucket::class_of(hash));
        }
    }

    /// What a comparison needs besides the hash: nothing, because the mixed word is the key.
    struct Comparison {};
    TH_STEP Comparison comparison(BatchView const&, std::size_t) const { return {}; }
    /// Lanes of the bucket that hold the key: at most one.
    TH_STEP std::uint32_t matches(std::uint64_t, Snapshot const& seen, std::uint64_t hash,
                                  Comparison) const {
        return seen.with_word(hash);
    }

    /// Not for the spare lane, which has a ticket but no word.
    TH_STEP std::uint64_t* word_at(Position position) const {
        return &buckets[position >> 3].words[position & 7];
    }
    TH_STEP Ticket* ticket_at(Position position) const {
        return &buckets[position >> 3].tickets[position & 7];
    }
    TH_STEP Ticket ticket(Position position) const { return Access::load(ticket_at(position)); }
    TH_STEP void set_ticket(Position position, Ticket value) const {
        Access::store(ticket_at(position), value);
    }
    TH_STEP void prefetch_ticket(Position position) const {
        prefetch_for_write(ticket_at(position));
    }
};

/// Fingerprints and tickets in slots. `Reader` is one of the Wide readers of key.hpp.
template <class Reader, class Access>
struct WideIndex {
    using Snapshot = WideSnapshot<Access>;
    WideBucket* buckets;
    std::uint64_t bucket_count;
    unsigned char const* key_buffer;
    HashSecret secret;
    Reader reader;

    TH_STEP explicit WideIndex(IndexView const& view)
        : buckets(static_cast<WideBucket*>(view.buckets)), bucket_count(view.bucket_count),
          key_buffer(view.key_buffer), secret(view.secret),
          reader(KeyFormat{view.key_bytes, view.float_bytes}) {}

    TH_STEP std::uint64_t hash(unsigned char const* keys, std::size_t row) const {
        // 63 bits: the top bit of a slot is an overflow bit.
        return reader.hash(keys + row * reader.bytes(), secret) >> 1;
    }
    TH_STEP std::uint64_t home(std::uint64_t hash) const {
        return WideBucket::home(hash, bucket_count);
    }
    TH_STEP Snapshot read(std::uint64_t bucket) const { return Snapshot(buckets[bucket]); }
    TH_STEP Snapshot read_slots(std::uint64_t bucket) const {
        return read(bucket).without_overflow();
    }
    TH_STEP static bool is_side(std::uint64_t) { return false; }
    TH_STEP static Position side_position(std::uint64_t) { return 0; }

    TH_STEP void mark_overflow(std::uint64_t bucket, std::uint64_t hash) const {
        set_bits<Access>(&buckets[bucket].slots[WideBucket::class_of(hash)], WideBucket::kOverflow);
    }
    TH_STEP std::uint32_t overflow_bits(std::uint64_t bucket) const {
        return read(bucket).overflow_bits();
    }
    TH_STEP bool has_overflow(std::uint64_t bucket, std::uint64_t hash) const {
        return Access::load(&buckets[bucket].slots[WideBucket::class_of(hash)]) >=
               WideBucket::kOverflow;
    }

    /// Where to find the key of a ticket: in the key buffer or, from `base` on, in the batch.
    struct Comparison {
        unsigned char const* wanted;
        unsigned char const* batch;
        std::uint32_t base;
    };
    TH_STEP Comparison comparison(BatchView const& batch, std::size_t row) const {
        return {batch.keys + row * reader.bytes(), batch.keys, batch.base};
    }
    TH_STEP unsigned char const* key_of(Ticket ticket, Comparison const& c) const {
        std::uint32_t const buf_index = to_buf_index(ticket);
        std::size_t const width = reader.bytes();
        return buf_index < c.base ? key_buffer + buf_index * width
                                  : c.batch + (buf_index - c.base) * width;
    }
    /// A lane with a matching fingerprint keeps its key while the batch runs, even if its ticket
    /// changes. So it is safe to read the slot again.
    TH_STEP std::uint32_t matches(std::uint64_t bucket, Snapshot const& seen, std::uint64_t hash,
                                  Comparison const& c) const {
        if (!seen.has_fingerprint(hash)) {
            return 0;
        }
        std::uint32_t candidates = seen.with_fingerprint(hash);
        for (; candidates != 0; candidates &= candidates - 1) {
            std::uint32_t const lane = lowest_bit(candidates);
            std::uint64_t const slot = Access::load(&buckets[bucket].slots[lane]);
            bool const is_key = holds_key(slot) && same_fingerprint(slot, hash);
            if (is_key && reader.equal(key_of(slot_ticket(slot), c), c.wanted)) {
                return 1u << lane;
            }
        }
        return 0;
    }
    /// Prefetches a key that may cross a cache line. One in eight 12-byte keys does, and would
    /// stall on the second line.
    TH_STEP void prefetch_key(unsigned char const* key) const {
        prefetch(key);
        if constexpr (Reader::kCrossesCacheLines) {
            prefetch(key + reader.bytes() - 1);
        }
    }

    TH_STEP std::uint64_t* slot_at(Position position) const {
        return &buckets[position >> 3].slots[position & 7];
    }
    TH_STEP Ticket ticket(Position position) const {
        return slot_ticket(Access::load(slot_at(position)));
    }
    /// Keeps the fingerprint and the overflow bit.
    TH_STEP void set_ticket(Position position, Ticket value) const {
        Access::store(slot_at(position), to_slot(Access::load(slot_at(position)), value));
    }
    TH_STEP void prefetch_ticket(Position position) const { prefetch_for_write(slot_at(position)); }
};

template <class Reader, class Access, bool Narrow = Reader::kNarrow>
struct IndexOf {
    using type = NarrowIndex<Reader, Access>;
};
template <class Reader, class Access>
struct IndexOf<Reader, Access, false> {
    using type = WideIndex<Reader, Access>;
};

/// The bucket after this one; the first comes after the last.
template <class Index>
TH_STEP std::uint64_t next_bucket(Index const& index, std::uint64_t bucket) {
    return bucket + 1 == index.bucket_count ? 0 : bucket + 1;
}

/// What a probe found where it stopped.
enum class Found : std::uint32_t {
    Key,      // the key's slot
    Empty,    // the key is absent; the first free slot is empty
    Erased,   // the key is absent; the first free slot is erased
    Unknown,  // the probe ended before it could tell
};

struct Slot {
    std::uint64_t bucket;
    std::uint32_t lane;
    Found found;

    TH_STEP Position position() const { return to_position(bucket, lane); }
};

/// How far a probe may go. Few probes leave their home bucket, but each of those would stall on
/// memory. So a back end can prefetch the next bucket and come back to the row later.
enum class ProbeRange : unsigned char { Home, All };

/// A probe ends at an empty slot, and every valid index has one. A corrupt index must not hang a
/// GPU, so device code visits each bucket at most once. The CPU does not pay for that.
inline constexpr bool kBoundedProbes = kDeviceSteps;

/// Probes from the key's home bucket to its slot, or to the first bucket with an empty slot: no key
/// lies beyond that. The slot to take is then the first free one on the way, erased ones included.
/// It is chosen only after the whole probe: the key may lie beyond an erased slot and must not get
/// a second one. A bounded probe that finds no empty slot returns Unknown. `home` is
/// index.home(hash), which loops over many rows keep.
template <class Index>
TH_STEP Slot probe(Index const& index, std::uint64_t hash, std::uint64_t home,
                   typename Index::Comparison const& comparison,
                   ProbeRange range = ProbeRange::All) {
    Slot free{0, 0, Found::Unknown};
    for (std::uint64_t bucket = home;; bucket = next_bucket(index, bucket)) {
        // A set overflow bit hides its lane from `read`. That is safe at home: a bucket with
        // overflow bits has no empty slot, so the answer is Unknown and ProbeRange::All finds the
        // key.
        auto const seen = range == ProbeRange::Home ? index.read(bucket) : index.read_slots(bucket);
        std::uint32_t const found = index.matches(bucket, seen, hash, comparison);
        if (found != 0) {
            return {bucket, lowest_bit(found), Found::Key};
        }
        std::uint32_t const empty = seen.empty();
        if (range == ProbeRange::Home) {
            // A bucket with an empty slot has no erased one (see `release`).
            return empty != 0 ? Slot{bucket, lowest_bit(empty), Found::Empty}
                              : Slot{0, 0, Found::Unknown};
        }
        if (free.found == Found::Unknown) {
            std::uint32_t const erased = seen.erased();
            if ((empty | erased) != 0) {
                std::uint32_t const lane = lowest_bit(empty | erased);
                free = {bucket, lane, (erased >> lane & 1) != 0 ? Found::Erased : Found::Empty};
            }
        }
        if (empty != 0) {
            return free;
        }
        if constexpr (kBoundedProbes) {
            if (next_bucket(index, bucket) == home) {
                return {0, 0, Found::Unknown};
            }
        }
    }
}

/// Sets the overflow bit of the key's class in every bucket from its home to the one before `to`.
template <class Index>
TH_STEP void mark_overflow(Index const& index, std::uint64_t hash, std::uint64_t home,
                           std::uint64_t to) {
    for (std::uint64_t bucket = home; bucket != to; bucket = next_bucket(index, bucket)) {
        index.mark_overflow(bucket, hash);
    }
}

}  // namespace TH_STEP_NAMESPACE
}  // namespace tensorhash::step
