// The CPU back end's loops over rows, as a table of functions: one table per key reader and instruction-set level.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensorhash/step/view.hpp"

namespace tensorhash::cpu {

/// What a range of claims did to the index.
struct ClaimCount {
    std::uint64_t claimed = 0;      // new keys: rows that took a slot, empty or erased
    std::uint64_t from_erased = 0;  // those of them that took an erased slot
    std::uint64_t undecided = 0;    // rows that met a slot whose first ticket was still on its way
};

/// What a range of releases did.
struct ReleaseCount {
    std::uint64_t released = 0;
    std::uint64_t to_erased = 0;  // those that left a tombstone
};

/// Entries to put into an empty index: the numbers of [begin, end) whose bit is set in `live`.
struct LiveRange {
    std::uint64_t const* live;
    std::size_t begin;
    std::size_t end;
};

/// All work on rows [begin, end) of a batch. `Shared` forms may run on several ranges of one batch at once, the plain
/// ones are for one thread alone; finding never writes and has one form.
struct Kernels {
    using View = kernel::IndexView;
    using Batch = kernel::BatchView;

    struct Writers {
        ClaimCount (*claim)(View const&, Batch const&, std::size_t begin, std::size_t end);
        /// Where located rows may want one entry twice: leaves at its slot who comes first.
        void (*mark)(View const&, Batch const&, std::size_t begin, std::size_t end);
        /// Releases the slots of located rows: all of them, or those whose mark is at their slot. The mask says which.
        ReleaseCount (*release_found)(View const&, Batch const&, std::size_t begin,
                                      std::size_t end);
        ReleaseCount (*release_marked)(View const&, Batch const&, std::size_t begin,
                                       std::size_t end);
        ReleaseCount (*release_claims)(View const&, Batch const&, std::size_t begin,
                                       std::size_t end);
        void (*place)(View const&, LiveRange const&);
    };

    /// Fills numbers with buffer indices, -1 for what is not there, and the mask.
    void (*find)(View const&, Batch const&, std::size_t begin, std::size_t end);
    /// The same, and the slots of those that are there.
    void (*locate)(View const&, Batch const&, std::size_t begin, std::size_t end);
    Writers sole;
    Writers shared;
    /// After shared claims that left rows undecided: those leave their tickets too. Ranges may run at once.
    void (*join_late)(View const&, Batch const&, std::size_t begin, std::size_t end);
    /// After all claims: returns how many rows of the range won their slot; numbers and mask say which.
    std::uint64_t (*settle)(View const&, Batch const&, std::size_t begin, std::size_t end);
    /// Numbers the winners of the range: the first takes rank `rank`. Ranks below `reusable` pop `free_top[-1 - rank]`.
    void (*publish)(View const&, Batch const&, std::size_t begin, std::size_t end,
                    std::uint64_t rank, std::uint32_t const* free_top, std::uint64_t reusable);
    /// Lines walked to find each row's key, summed; `longest` is raised to the maximum.
    std::uint64_t (*probe_lines)(View const&, Batch const&, std::size_t begin, std::size_t end,
                                 std::uint64_t& longest);
};

/// Slots of a line and how many entries a line may hold on average, by key width.
struct LineRule {
    std::uint32_t lanes;
    std::uint32_t entries;  // a table is sized for at most so many live entries a line
    std::uint32_t
        occupied;  // and rebuilt before live and erased slots are more than so many a line
};

constexpr bool is_narrow(std::uint32_t key_bytes) noexcept { return key_bytes <= 8; }
constexpr LineRule line_rule(std::uint32_t key_bytes) noexcept {
    return is_narrow(key_bytes) ? LineRule{5, 3, 4} : LineRule{8, 5, 7};
}

/// Whether this machine can run the loops of the level x86-64-v3.
bool has_v3() noexcept;

/// The loops for this key format, at the best level that this machine (and TENSORHASH_ISA) has.
Kernels const& kernels(std::uint32_t key_bytes, std::uint32_t float_bytes);

}  // namespace tensorhash::cpu
