// The probe loop over lines, and what the two layouts answer to it.
#pragma once

#include "tensorhash/step/hash.hpp"
#include "tensorhash/step/key.hpp"
#include "tensorhash/step/snapshot.hpp"
#include "tensorhash/step/view.hpp"

namespace tensorhash::kernel {
inline namespace TH_KERNEL_NAMESPACE {

/// Words in slots. `Reader` is one of the Narrow readers of key.hpp.
template <class Reader, class Access>
struct NarrowIndex {
    using Snapshot = NarrowSnapshot<Access>;
    NarrowLine* lines;
    std::uint64_t line_mask;
    HashSecret secret;
    Reader reader;

    TH_STEP explicit NarrowIndex(IndexView const& view)
        : lines(static_cast<NarrowLine*>(view.lines)), line_mask(view.line_mask),
          secret(view.secret), reader(KeyFormat{view.key_bytes, view.float_bytes}) {}

    TH_STEP std::uint64_t hash(unsigned char const* keys, std::size_t row) const {
        return mix(reader.word(keys, row), secret);
    }
    TH_STEP Snapshot read(std::uint64_t line) const { return Snapshot(lines[line]); }
    TH_STEP Snapshot read_slots(std::uint64_t line) const { return read(line); }

    /// The word is a mark, and the key's ticket a spare one: of line 0 or 1.
    TH_STEP static bool is_side(std::uint64_t hash) { return hash <= NarrowLine::kErased; }
    TH_STEP static Position side_position(std::uint64_t hash) {
        return to_position(hash, NarrowLine::kSpareLane);
    }

    /// The classes that went past a line that keeps_traces, a bit each.
    TH_STEP std::uint32_t traces(std::uint64_t line) const {
        return Access::load(&lines[line].tickets[NarrowLine::kSpareLane]);
    }
    TH_STEP void leave_trace(std::uint64_t line, std::uint64_t hash) const {
        if (NarrowLine::keeps_traces(line)) {
            set_bits<Access>(&lines[line].tickets[NarrowLine::kSpareLane],
                             std::uint32_t{1} << NarrowLine::class_of(hash));
        }
    }

    /// What a row's comparison needs beside its hash: nothing, the word is the key.
    struct Comparison {};
    TH_STEP Comparison comparison(BatchView const&, std::size_t) const { return {}; }
    /// Lanes of the line that hold the key: at most one.
    TH_STEP std::uint32_t matches(std::uint64_t, Snapshot const& seen, std::uint64_t hash,
                                  Comparison) const {
        return seen.with_word(hash);
    }

    TH_STEP Ticket* ticket_at(Position position) const {
        return &lines[position >> 3].tickets[position & 7];
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
    WideLine* lines;
    std::uint64_t line_mask;
    unsigned char const* key_buffer;
    HashSecret secret;
    Reader reader;

    TH_STEP explicit WideIndex(IndexView const& view)
        : lines(static_cast<WideLine*>(view.lines)), line_mask(view.line_mask),
          key_buffer(view.key_buffer), secret(view.secret),
          reader(KeyFormat{view.key_bytes, view.float_bytes}) {}

    TH_STEP std::uint64_t hash(unsigned char const* keys, std::size_t row) const {
        // No place in a slot for 64 bits.
        return reader.hash(keys + row * reader.bytes(), secret) >> 1;
    }
    TH_STEP Snapshot read(std::uint64_t line) const { return Snapshot(lines[line]); }
    TH_STEP Snapshot read_slots(std::uint64_t line) const { return read(line).without_traces(); }
    TH_STEP static bool is_side(std::uint64_t) { return false; }
    TH_STEP static Position side_position(std::uint64_t) { return 0; }

    TH_STEP void leave_trace(std::uint64_t line, std::uint64_t hash) const {
        set_bits<Access>(&lines[line].slots[WideLine::class_of(hash)], WideLine::kTrace);
    }
    TH_STEP std::uint32_t traces(std::uint64_t line) const { return read(line).traces(); }
    TH_STEP bool has_trace(std::uint64_t line, std::uint64_t hash) const {
        return Access::load(&lines[line].slots[WideLine::class_of(hash)]) >= WideLine::kTrace;
    }

    /// Where the keys are that tickets mean: a row of the key buffer or, from `base` on, a row of the batch.
    struct Comparison {
        unsigned char const* wanted;
        unsigned char const* batch;
        std::uint32_t base;
    };
    TH_STEP Comparison comparison(BatchView const& batch, std::size_t row) const {
        return {batch.keys + row * reader.bytes(), batch.keys, batch.base};
    }
    TH_STEP unsigned char const* key_of(Ticket ticket, Comparison const& c) const {
        std::uint32_t const number = to_number(ticket);
        std::size_t const width = reader.bytes();
        return number < c.base ? key_buffer + number * width : c.batch + (number - c.base) * width;
    }
    /// A lane whose fingerprint matched keeps its key while the batch runs, whatever its ticket does: reading the slot
    /// once more is safe.
    TH_STEP std::uint32_t matches(std::uint64_t line, Snapshot const& seen, std::uint64_t hash,
                                  Comparison const& c) const {
        if (!seen.has_fingerprint(hash)) {
            return 0;
        }
        std::uint32_t candidates = seen.with_fingerprint(hash);
        for (; candidates != 0; candidates &= candidates - 1) {
            std::uint32_t const lane = lowest_bit(candidates);
            std::uint64_t const slot = Access::load(&lines[line].slots[lane]);
            bool const is_key = holds_key(slot) && same_fingerprint(slot, hash);
            if (is_key && reader.equal(key_of(slot_ticket(slot), c), c.wanted)) {
                return 1u << lane;
            }
        }
        return 0;
    }
    /// Asks for a key that may lie across two lines: one in eight of 12-byte keys does, and would wait for the second.
    TH_STEP void prefetch_key(unsigned char const* key) const {
        prefetch(key);
        if constexpr (Reader::kCrossesLines) {
            prefetch(key + reader.bytes() - 1);
        }
    }
    /// Asks for the key that the home line's first candidate points at; the line itself must be near already.
    TH_STEP void prefetch_candidate(std::uint64_t hash, Comparison const& c) const {
        std::uint64_t const line = hash & line_mask;
        std::uint32_t const candidates = read(line).with_fingerprint(hash);
        if (candidates == 0) {
            return;
        }
        std::uint64_t const slot = Access::load(&lines[line].slots[lowest_bit(candidates)]);
        if (holds_key(slot)) {
            prefetch_key(key_of(slot_ticket(slot), c));
        }
    }

    TH_STEP std::uint64_t* slot_at(Position position) const {
        return &lines[position >> 3].slots[position & 7];
    }
    TH_STEP Ticket ticket(Position position) const {
        return slot_ticket(Access::load(slot_at(position)));
    }
    /// The fingerprint and the trace stay.
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

/// What a probe found at the place where it stopped.
enum class Found : std::uint32_t {
    Key,      // the key's slot
    Empty,    // no key; this slot is the first that is free to take it
    Erased,   // the same, free by erasing
    Unknown,  // the walk ended before it could tell
};

struct Slot {
    std::uint64_t line;
    std::uint32_t lane;
    Found found;

    TH_STEP Position position() const { return to_position(line, lane); }
};

/// How far a probe may go. Few leave their home line, but each of those would wait for memory there: a back end can
/// ask for the next line and come back to the row when it is near.
enum class Walk : unsigned char { Home, All };

/// Walks end at an empty slot, which every sound index has. A broken index must not hang a GPU, so a
/// walk of device code visits each line at most once. The CPU does not pay for that.
inline constexpr bool kBoundedWalks = kDeviceSteps;

/// Walks from the key's home line to its slot, or to the first line with an empty slot: no key lies
/// beyond that. The slot to take is then the first free one on the way, erased ones included. It is
/// taken only after the whole walk: the key may lie behind an erased slot, and must not get a second
/// one. A bounded walk that meets no empty slot answers Unknown.
template <class Index>
TH_STEP Slot probe(Index const& index, std::uint64_t hash,
                   typename Index::Comparison const& comparison, Walk walk = Walk::All) {
    Slot free{0, 0, Found::Unknown};
    for (std::uint64_t line = hash & index.line_mask;; line = (line + 1) & index.line_mask) {
        // A trace hides its lane from `read`. A walk that ends at home then knows nothing, since such a line has no
        // empty slot, and the walk over all lines finds the key.
        auto const seen = walk == Walk::Home ? index.read(line) : index.read_slots(line);
        std::uint32_t const found = index.matches(line, seen, hash, comparison);
        if (found != 0) {
            return {line, lowest_bit(found), Found::Key};
        }
        std::uint32_t const empty = seen.empty();
        if (walk == Walk::Home) {
            // A line that has an empty slot has no erased one (see `release`).
            return empty != 0 ? Slot{line, lowest_bit(empty), Found::Empty}
                              : Slot{0, 0, Found::Unknown};
        }
        if (free.found == Found::Unknown) {
            std::uint32_t const erased = seen.erased();
            if ((empty | erased) != 0) {
                std::uint32_t const lane = lowest_bit(empty | erased);
                free = {line, lane, (erased >> lane & 1) != 0 ? Found::Erased : Found::Empty};
            }
        }
        if (empty != 0) {
            return free;
        }
        if constexpr (kBoundedWalks) {
            if (((line + 1 - hash) & index.line_mask) == 0) {
                return {0, 0, Found::Unknown};
            }
        }
    }
}

/// In the lines that a key goes past on the way from its home line to the one that has its slot.
template <class Index>
TH_STEP void leave_traces(Index const& index, std::uint64_t hash, std::uint64_t to) {
    for (std::uint64_t line = hash & index.line_mask; line != to;
         line = (line + 1) & index.line_mask) {
        index.leave_trace(line, hash);
    }
}

}  // namespace TH_KERNEL_NAMESPACE
}  // namespace tensorhash::kernel
