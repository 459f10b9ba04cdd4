// The index for host code: memory for the buckets, their load, and the row loops run on all
// threads.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "cpu/engine.hpp"
#include "runtime/memory.hpp"
#include "runtime/parallel.hpp"
#include "tensorhash/step/key.hpp"
#include "tensorhash/step/view.hpp"

namespace tensorhash::index {

/// Buckets that lookups probe: 1 is best.
struct ProbeLengths {
    double mean = 0;
    std::uint64_t longest = 0;
};

/// For each chunk, the number of winners in the chunks before it. On the stack: nothing may fail
/// after claims are made.
using Ranks = std::array<std::uint64_t, runtime::kMaxChunks + 1>;

class BucketIndex {
public:
    /// An empty index of `buckets` buckets, at least 2. Unless zero-filled, call the place() that
    /// takes another index first. The seed decides where keys lie, but never shows in results.
    BucketIndex(step::KeyFormat format, std::uint64_t buckets, std::uint64_t seed,
                runtime::Fill fill = runtime::Fill::Zero);

    /// The number of buckets of an index that is made for this many entries.
    static std::uint64_t buckets_for(step::KeyFormat format, std::uint64_t entries);
    /// The number of buckets that this index should have for this many entries: as many as it has
    /// if that is enough. Otherwise it grows by a constant factor at least.
    std::uint64_t grown_for(std::uint64_t entries) const noexcept;

    /// A copy with memory of its own.
    BucketIndex copy() const;

    std::uint64_t buckets() const noexcept { return buckets_; }
    std::uint64_t seed() const noexcept { return seed_; }
    std::uint64_t slots() const noexcept {
        return buckets_ * cpu::bucket_rule(format_.bytes).lanes;
    }
    std::size_t bytes() const noexcept { return memory_.bytes(); }
    /// The most entries that the index holds before it must grow.
    std::uint64_t most_entries() const noexcept { return most_entries_; }
    /// New keys that fit for certain, wherever they hash.
    std::uint64_t room() const noexcept;

    void find(unsigned char const* key_buffer, step::BatchView const& batch,
              std::size_t rows) const;
    /// The mask says which rows took a slot and kept it, so far.
    cpu::ClaimCount claim(unsigned char const* key_buffer, step::BatchView const& batch,
                          std::size_t begin, std::size_t end);
    /// Undoes the claims of rows [0, rows).
    void release_claims(unsigned char const* key_buffer, step::BatchView const& batch,
                        std::size_t rows) noexcept;
    /// After all claims: the ranks of the winners, which are in the mask. buf_indices gets base +
    /// winning row.
    void rank_and_follow(unsigned char const* key_buffer, step::BatchView const& batch,
                         runtime::Chunks const& chunks, Ranks& ranks) const noexcept;
    /// Gives buffer indices to the winners: first `reusable` ones from the stack that ends at
    /// `free_top`, then fresh ones from base on.
    void publish(unsigned char const* key_buffer, step::BatchView const& batch, std::size_t rows,
                 std::uint32_t const* free_top, std::uint64_t reusable) noexcept;
    /// Finds the keys and releases their slots, on one thread. Of equal keys the first row has the
    /// entry. Returns how many rows did.
    std::uint64_t erase(unsigned char const* key_buffer, step::BatchView const& batch,
                        std::size_t rows) noexcept;
    /// The same for chunks of rows that may run at once; `taken` gets the counts of the chunks. Of
    /// equal keys in one chunk the first row has the entry. Of those in several chunks any rows
    /// may: table/contested.hpp corrects that.
    void erase(unsigned char const* key_buffer, step::BatchView const& batch,
               runtime::Chunks const& chunks, std::span<std::uint64_t> taken) noexcept;
    /// The hashes of listed rows. Depend on the seed, and on nothing else of the index.
    void hash(unsigned char const* keys, cpu::RowList const& list,
              std::uint64_t* out) const noexcept;
    // As in cpu::IndexLoops: erases listed rows again. Lists may run at once.
    void put_back(unsigned char const* key_buffer, step::BatchView const& batch,
                  cpu::RowList const& list) noexcept;
    void find_put_back(unsigned char const* key_buffer, step::BatchView const& batch,
                       cpu::RowList const& list) const noexcept;
    void mark(unsigned char const* key_buffer, step::BatchView const& batch,
              cpu::RowList const& list) noexcept;
    void release_marked(unsigned char const* key_buffer, step::BatchView const& batch,
                        cpu::RowList const& list) noexcept;
    /// Fills an empty index with the `count` entries in [0, top) that have their bit set in `live`.
    void place(unsigned char const* key_buffer, std::uint64_t const* live, std::size_t top,
               std::uint64_t count) noexcept;
    /// The same from another index of the same seed that holds exactly these entries. Faster if its
    /// slots hold enough of the hash. Overwrites this index.
    void place(unsigned char const* key_buffer, std::uint64_t const* live, std::size_t top,
               std::uint64_t count, BucketIndex const& other) noexcept;
    void clear() noexcept;

    /// Gets memory for this many buckets, without using it yet. Null if the memory cannot grow.
    runtime::Extension extend(std::uint64_t buckets);
    /// Has `buckets` buckets from now on and holds the given entries, which are those that it held
    /// before. The memory must already be large enough; what is not needed any more goes back.
    void resize(unsigned char const* key_buffer, std::uint64_t const* live, std::size_t top,
                std::uint64_t count, std::uint64_t buckets) noexcept;

    step::IndexView view(unsigned char const* key_buffer) const noexcept;
    /// Counts the entries in the buckets.
    std::uint64_t count_entries() const;
    ProbeLengths probe_lengths(unsigned char const* key_buffer, step::BatchView const& batch,
                               std::size_t rows) const;

private:
    void set_buckets(std::uint64_t buckets) noexcept;
    void follow(unsigned char const* key_buffer, step::BatchView const& batch,
                runtime::Chunks const& chunks) const noexcept;
    void subtract(std::uint64_t released, std::uint64_t to_erased) noexcept;
    bool spread(BucketIndex const& other) noexcept;
    bool spread_in_place(std::uint64_t buckets) noexcept;
    cpu::IndexLoops::Writers const& writers(bool shared) const noexcept {
        return shared ? loops_->shared : loops_->exclusive;
    }

    step::KeyFormat format_;
    std::uint64_t seed_;
    step::HashSecret secret_;
    cpu::IndexLoops const* loops_;
    runtime::Block memory_;
    std::uint64_t buckets_ = 0;
    std::uint64_t most_entries_ = 0;
    std::uint64_t most_occupied_ = 0;
    std::uint64_t entries_ = 0;
    std::uint64_t erased_ = 0;  // slots marked as erased
};

}  // namespace tensorhash::index
