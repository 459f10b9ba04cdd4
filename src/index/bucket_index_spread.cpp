// Fills an index from one that is not larger, bucket by bucket, so that memory access is
// sequential.
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>

#include "index/bucket_index.hpp"

namespace tensorhash::index {
namespace {

using runtime::Chunks;
using step::NarrowBucket;

struct Entry {
    std::uint64_t word;
    step::Ticket ticket;
};

/// The buckets of an index.
template <class Bucket>
struct Buckets {
    Bucket* data;
    std::uint64_t mask;
};

// Growth by a larger factor is left to place(): there are few entries to move then.
constexpr std::uint64_t kMostParts = 8;

/// Entries that belong near a boundary between threads. Few, unless keys were crafted to collide.
class Deferred {
public:
    void add(Entry const& entry) noexcept {
        std::size_t const at = count_.fetch_add(1, std::memory_order_relaxed);
        if (at < entries_.size()) {
            entries_[at] = entry;
        }
    }
    bool all_kept() const noexcept { return count() <= entries_.size(); }
    std::size_t count() const noexcept { return count_.load(std::memory_order_relaxed); }
    Entry const& operator[](std::size_t i) const noexcept { return entries_[i]; }

private:
    std::atomic<std::size_t> count_{0};
    std::array<Entry, 4096> entries_;
};

/// Returns false if the bucket is full, and then marks overflow for the class of the entry.
bool put(Buckets<NarrowBucket> const& buckets, std::uint64_t at, Entry const& entry) noexcept {
    NarrowBucket& bucket = buckets.data[at];
    for (std::uint32_t lane = 0; lane < NarrowBucket::kLanes; ++lane) {
        if (bucket.words[lane] == NarrowBucket::kEmpty) {
            bucket.words[lane] = entry.word;
            bucket.tickets[lane] = entry.ticket;
            return true;
        }
    }
    if (NarrowBucket::has_overflow_bits(at)) {
        bucket.tickets[NarrowBucket::kSpareLane] |= std::uint32_t{1}
                                                    << NarrowBucket::class_of(entry.word);
    }
    return false;
}

/// One thread's share: the old buckets [begin, end), in order. A home bucket is the low bits of the
/// mixed key. So the entries of an old bucket go to the new bucket with the same index, or to one
/// that is a multiple of the old size further on. No other thread writes these.
class Part {
public:
    Part(Buckets<NarrowBucket const> const& from, Buckets<NarrowBucket> const& to,
         std::size_t begin, Deferred& deferred)
        : from_(from), to_(to), begin_(begin), done_(begin), deferred_(deferred) {}

    /// Writes the new buckets of the next old one. Fills them in order instead of searching for
    /// room: no branches, and no stalls on recent stores.
    void fill_next() noexcept {
        NarrowBucket const& old = from_.data[done_];
        std::uint64_t const old_buckets = from_.mask + 1;
        for (std::uint64_t bucket = done_; bucket <= to_.mask; bucket += old_buckets) {
            std::memset(&to_.data[bucket], 0, sizeof(NarrowBucket));
        }
        auto const old_bits = std::bit_width(from_.mask);
        std::uint64_t counts = 0;  // one byte per new bucket
        for (std::uint32_t lane = 0; lane < NarrowBucket::kLanes; ++lane) {
            std::uint64_t const word = old.words[lane];
            bool const is_key = word > NarrowBucket::kErased;
            bool const at_home = is_key && (word & from_.mask) == done_;
            std::uint64_t const bucket = at_home ? word & to_.mask : done_;
            std::uint64_t const shift = (bucket >> old_bits) * 8;
            std::uint64_t const next = counts >> shift & 0xff;  // below kLanes
            to_.data[bucket].words[next] = at_home ? word : NarrowBucket::kEmpty;
            to_.data[bucket].tickets[next] = at_home ? old.tickets[lane] : step::kNoTicket;
            counts += std::uint64_t{at_home} << shift;
            if (is_key && !at_home) {
                add_late({word, old.tickets[lane]});
            }
        }
        ++done_;
    }

    /// After the last bucket. What is left belongs beyond this part.
    void finish() noexcept {
        place_late();
        for (std::size_t i = 0; i < late_count_; ++i) {
            deferred_.add(late_[i]);
        }
    }

private:
    /// An entry that was not in its old home bucket. If that home is in another part, because the
    /// entry crossed a boundary or the end of the index, it is deferred.
    void add_late(Entry const& entry) noexcept {
        std::uint64_t const home = entry.word & from_.mask;
        if (late_count_ == late_.size()) {
            place_late();
        }
        if (home < begin_ || home > done_ || late_count_ == late_.size()) {
            deferred_.add(entry);
        } else {
            late_[late_count_++] = entry;
        }
    }

    /// Places late entries. An entry that reaches a bucket that is not done yet stays.
    void place_late() noexcept {
        std::size_t left = 0;
        for (std::size_t i = 0; i < late_count_; ++i) {
            if (!place(late_[i])) {
                late_[left++] = late_[i];
            }
        }
        late_count_ = left;
    }

    /// Puts the entry into its home bucket or a later one. False if the next one is not done yet.
    bool place(Entry const& entry) noexcept {
        auto const is_done = [&](std::uint64_t bucket) {
            return (bucket & from_.mask) >= begin_ && (bucket & from_.mask) < done_;
        };
        std::uint64_t bucket = entry.word & to_.mask;
        while (is_done(bucket) && !put(to_, bucket, entry)) {
            bucket = (bucket + 1) & to_.mask;
        }
        return is_done(bucket);
    }

    Buckets<NarrowBucket const> from_;
    Buckets<NarrowBucket> to_;
    std::size_t begin_;
    std::size_t done_;  // old buckets below this are done
    Deferred& deferred_;
    std::array<Entry, 64> late_;
    std::size_t late_count_ = 0;
};

}  // namespace

/// One thread places the entries near boundaries at the end. Returns false if there are too many.
bool BucketIndex::spread(BucketIndex const& smaller) noexcept {
    Buckets<NarrowBucket const> const from{
        reinterpret_cast<NarrowBucket const*>(smaller.memory_.data()), smaller.buckets_ - 1};
    Buckets<NarrowBucket> const to{reinterpret_cast<NarrowBucket*>(memory_.data()), buckets_ - 1};
    Deferred deferred;
    runtime::for_ranges(smaller.buckets_, runtime::kGrain, [&](std::size_t begin, std::size_t end) {
        Part part(from, to, begin, deferred);
        for (std::size_t bucket = begin; bucket < end; ++bucket) {
            part.fill_next();
        }
        part.finish();
    });
    if (!deferred.all_kept()) {
        return false;
    }
    for (std::size_t i = 0; i < deferred.count(); ++i) {
        std::uint64_t bucket = deferred[i].word & to.mask;
        while (!put(to, bucket, deferred[i])) {
            bucket = (bucket + 1) & to.mask;
        }
    }
    for (std::size_t side = 0; side <= NarrowBucket::kErased; ++side) {
        to.data[side].tickets[NarrowBucket::kSpareLane] =
            from.data[side].tickets[NarrowBucket::kSpareLane];
    }
    return true;
}

void BucketIndex::place(unsigned char const* key_buffer, std::uint64_t const* live, std::size_t top,
                        std::uint64_t count, BucketIndex const& other) noexcept {
    // Wide slots hold half of a hash, which is not enough to place them.
    if (cpu::is_narrow(format_.bytes) && other.buckets_ <= buckets_ &&
        buckets_ / other.buckets_ <= kMostParts && spread(other)) {
        occupied_ = count;
        return;
    }
    clear();
    place(key_buffer, live, top, count);
}

}  // namespace tensorhash::index
