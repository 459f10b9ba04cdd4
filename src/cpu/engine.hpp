// The CPU back end's loops over rows, as a table of functions: one table per key reader and
// instruction-set level.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensorhash/step/view.hpp"

namespace tensorhash::cpu {

/// What a range of claims did to the index.
struct ClaimCount {
    std::uint64_t claimed = 0;      // new keys: rows that took a slot, empty or erased
    std::uint64_t from_erased = 0;  // of these, rows that took an erased slot
    std::uint64_t undecided = 0;    // rows that met a slot without its first ticket
    std::uint64_t overtook = 0;     // rows with the mask kOvertook: call cpu::settle()
};

/// What a range of releases did.
struct ReleaseCount {
    std::uint64_t released = 0;
    std::uint64_t to_erased = 0;  // slots that became erased, not empty
};

/// Some rows of a batch, ascending.
struct RowList {
    std::uint32_t const* rows;
    std::size_t count;
};

/// Entries to put into an empty index: the buffer indices in [begin, end) with their bit set in
/// `live`.
struct LiveRange {
    std::uint64_t const* live;
    std::size_t begin;
    std::size_t end;
};

/// All work on rows [begin, end) of a batch. `shared` functions may run on several ranges of one
/// batch at once; `exclusive` ones run on one thread. Finding never writes and has one form.
struct IndexLoops {
    using View = step::IndexView;
    using Batch = step::BatchView;

    struct Writers {
        ClaimCount (*claim)(View const&, Batch const&, std::size_t begin, std::size_t end);
        /// Finds each row's key and releases its slot. Fills mask and buf_indices as `find` does,
        /// and the positions of the keys found; exclusive loops may not fill those. Of equal keys
        /// the first row has the entry and the others find nothing, unless they are in ranges that
        /// run at once: then any of these rows may have the entry, and more than one may.
        ReleaseCount (*erase)(View const&, Batch const&, std::size_t begin, std::size_t end);
        /// Undoes claims that are settled.
        ReleaseCount (*release_claims)(View const&, Batch const&, std::size_t begin,
                                       std::size_t end);
        void (*place)(View const&, LiveRange const&);
    };

    /// Fills the mask and buf_indices; absent keys get -1.
    void (*find)(View const&, Batch const&, std::size_t begin, std::size_t end);
    Writers exclusive;
    Writers shared;
    /// After shared claims that left rows undecided: adds the tickets of those rows. Ranges may run
    /// at once. Returns how many rows overtook another one.
    std::uint64_t (*join_late)(View const&, Batch const&, std::size_t begin, std::size_t end);
    /// After all claims are settled, and again after the winners are published: rows that lost get
    /// the winner's answer.
    void (*follow)(View const&, Batch const&, std::size_t begin, std::size_t end);
    /// Gives buffer indices to the winners of the range, which are settled; the first has rank
    /// `rank`. Ranks below `reusable` pop `free_top[-1 - rank]`.
    void (*publish)(View const&, Batch const&, std::size_t begin, std::size_t end,
                    std::uint64_t rank, std::uint32_t const* free_top, std::uint64_t reusable);
    /// The hashes of listed rows.
    void (*hash)(View const&, unsigned char const* keys, RowList const&, std::uint64_t* out);

    // For rows that erased side by side. Each function may run on several lists at once.
    /// Puts back the entries of the listed rows that have one, even one entry of several rows.
    /// Counts each row.
    ReleaseCount (*put_back)(View const&, Batch const&, RowList const&);
    /// Then: gives the listed rows without an entry their key's, if it was put back.
    void (*find_put_back)(View const&, Batch const&, RowList const&);
    /// Then: each entry goes to the first row that has it.
    void (*mark)(View const&, Batch const&, RowList const&);
    /// Then: releases the slots again, for their first rows. The others have no entry any more.
    ReleaseCount (*release_marked)(View const&, Batch const&, RowList const&);

    /// Sums the buckets probed to find each row's key. Raises `longest` to the maximum.
    std::uint64_t (*probe_buckets)(View const&, Batch const&, std::size_t begin, std::size_t end,
                                   std::uint64_t& longest);
};

/// Lanes per bucket, load limits and growth, by key width. The loads are entries per 100 buckets:
/// docs/decisions/0038-any-number-of-buckets.md has their measurements.
struct BucketRule {
    std::uint32_t lanes;
    std::uint32_t sized;     // of an index that is made for a known number of entries
    std::uint32_t entries;   // it grows before it holds more than this
    std::uint32_t occupied;  // it is rebuilt before entries and erased slots exceed this
    std::uint32_t growth;    // buckets of a large index after growth, per 100 before
    std::uint32_t doubled;  // an index of no more buckets than this doubles: it moves fewer entries
};

constexpr bool is_narrow(std::uint32_t key_bytes) noexcept { return key_bytes <= 8; }
constexpr BucketRule bucket_rule(std::uint32_t key_bytes) noexcept {
    return is_narrow(key_bytes) ? BucketRule{5, 250, 340, 375, 150, 1 << 17}
                                : BucketRule{8, 400, 550, 650, 165, 1 << 16};
}

/// Can this machine run the loops of level x86-64-v3? And those of x86-64-v4, which adds AVX-512?
bool has_v3() noexcept;
bool has_v4() noexcept;

/// The loops for this key format, at the best level that the machine and TENSORHASH_ISA allow.
IndexLoops const& index_loops(std::uint32_t key_bytes, std::uint32_t float_bytes);

}  // namespace tensorhash::cpu
