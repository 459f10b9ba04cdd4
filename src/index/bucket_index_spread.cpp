// Fills an index from another one, bucket by bucket, so that memory access is sequential. The home
// buckets of a larger or smaller index have the same order, so the entries of adjacent buckets stay
// together. An index that grows can even be filled from itself.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

#include "index/bucket_index.hpp"
#include "runtime/streaming.hpp"

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
    std::uint64_t count;

    std::uint64_t home(std::uint64_t word) const noexcept {
        return NarrowBucket::home(word, count);
    }
    /// The first bucket that gets no word below the first word of bucket `at` of `others`.
    template <class Other>
    std::uint64_t first_after(Buckets<Other> const& others, std::uint64_t at) const noexcept {
        if (at == others.count) {
            return count;
        }
        std::uint64_t const low = first_bits(at, others.count);
        std::uint64_t const bucket = step::home_of(static_cast<std::uint32_t>(low), count);
        return bucket + (first_bits(bucket, count) < low ? 1 : 0);
    }

private:
    /// The smallest high half of a word that has its home in this bucket.
    static std::uint64_t first_bits(std::uint64_t bucket, std::uint64_t count) noexcept {
        return ((bucket << 32) + count - 1) / count;
    }
};

// Growth by a larger factor is left to place(): there are few entries to move then. Most entries of
// an old bucket have their new home among the next kWindow buckets, also those that had left their
// old home by one bucket. An index that shrinks a lot has too many entries per bucket to place.
constexpr std::uint64_t kMostGrowth = 3;
constexpr std::uint64_t kMostShrinking = 16;
constexpr std::uint32_t kWindow = 8;
constexpr std::uint32_t kIgnored = kWindow;

// From this size on, buckets go to memory with streaming stores.
constexpr std::uint64_t kStreamedFrom = (std::uint64_t{16} << 20) / sizeof(NarrowBucket);

/// Entries that belong near a boundary between parts. Few, unless keys were crafted to collide.
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

/// One thread's share: the old buckets [begin, end), in order, and the new buckets [first, last)
/// that get only words of these. No other part writes the new buckets.
class Part {
public:
    Part(Buckets<NarrowBucket const> const& from, Buckets<NarrowBucket> const& to,
         std::uint64_t begin, std::uint64_t end, Deferred& deferred)
        : from_(from), to_(to), first_(to.first_after(from, begin)),
          last_(to.first_after(from, end)), base_(first_), deferred_(deferred) {
        std::memset(window_, 0, kWindowBytes);
        std::uint64_t const whole = to.count / from.count;
        std::uint64_t const part = to.count % from.count;
        // The words of old bucket i go to new bucket i * to.count / from.count or later.
        std::uint64_t reached = begin * to.count / from.count;
        std::uint64_t rest = begin * to.count % from.count;
        std::uint64_t before = reached;
        for (std::uint64_t at = begin; at < end; ++at) {
            write_to(before);
            fill(from.data[at]);
            before = reached;
            rest += part;
            bool const carry = rest >= from.count;
            rest -= carry ? from.count : 0;
            reached += whole + (carry ? 1 : 0);
        }
        write_to(last_);
        defer_window();
        place_late();
        for (std::size_t i = 0; i < late_count_; ++i) {
            deferred_.add(late_[i]);
        }
        runtime::end_stream();
    }

private:
    static NarrowBucket* aligned(unsigned char* bytes) noexcept {
        std::size_t const beyond = reinterpret_cast<std::uintptr_t>(bytes) % alignof(NarrowBucket);
        return reinterpret_cast<NarrowBucket*>(bytes +
                                               (beyond == 0 ? 0 : alignof(NarrowBucket) - beyond));
    }
    static bool is_key(std::uint64_t word) noexcept { return word > NarrowBucket::kErased; }
    /// Is this new bucket in the window? A bucket before base_ gives a large difference.
    bool is_near(std::uint64_t bucket) const noexcept { return bucket - base_ < kWindow; }

    /// Moves the entries of an old bucket to the window. Fills buckets in order instead of
    /// searching for room. No branch depends on which lanes hold entries: that is unpredictable.
    void fill(NarrowBucket const& old) noexcept {
        // An empty slot looks like an entry of bucket 0. So that bucket gets late entries only.
        if (base_ == 0) [[unlikely]] {
            return fill_late(old, [](std::uint64_t) { return true; });
        }
        std::uint64_t far = 0;
        for (std::uint32_t lane = 0; lane < NarrowBucket::kLanes; ++lane) {
            std::uint64_t const word = old.words[lane];
            auto const home = static_cast<std::uint32_t>(to_.home(word));
            std::uint32_t const near = step::unpredictable(is_near(home) ? ~0u : 0u);
            far |= word & ~static_cast<std::uint64_t>(static_cast<std::int32_t>(near));
            std::uint32_t const at = kIgnored ^ (near & (home % kWindow ^ kIgnored));
            std::uint32_t const next = counts_[at];
            if (next == NarrowBucket::kLanes) [[unlikely]] {
                add_late({word, old.tickets[lane]});
                continue;
            }
            window_[at].words[next] = word;
            window_[at].tickets[next] = old.tickets[lane];
            counts_[at] = static_cast<std::uint8_t>(next + 1);
        }
        counts_[kIgnored] = 0;
        if (is_key(far)) [[unlikely]] {
            fill_late(old, [&](std::uint64_t home) { return !is_near(home); });
        }
    }

    /// Adds the entries with is_late(home).
    template <class IsLate>
    void fill_late(NarrowBucket const& old, IsLate const& is_late) noexcept {
        for (std::uint32_t lane = 0; lane < NarrowBucket::kLanes; ++lane) {
            if (is_key(old.words[lane]) && is_late(to_.home(old.words[lane]))) {
                add_late({old.words[lane], old.tickets[lane]});
            }
        }
    }

    /// Writes the buckets before `end` to memory. From then on only late entries are added to them.
    void write_to(std::uint64_t end) noexcept {
        for (; base_ < end; ++base_) {
            NarrowBucket& done = window_[base_ % kWindow];
            if (to_.count >= kStreamedFrom) {
                runtime::stream_bytes(reinterpret_cast<unsigned char*>(&to_.data[base_]),
                                      reinterpret_cast<unsigned char const*>(&done), sizeof(done));
            } else {
                to_.data[base_] = done;
            }
            std::memset(&done, 0, sizeof(done));
            counts_[base_ % kWindow] = 0;
        }
    }

    /// What is left in the window belongs to the next part.
    void defer_window() noexcept {
        for (std::uint64_t at = 0; at < kWindow; ++at) {
            for (std::uint32_t lane = 0; lane < counts_[at]; ++lane) {
                deferred_.add({window_[at].words[lane], window_[at].tickets[lane]});
            }
        }
    }

    /// An entry that was far from its old home, or that finds its new one full. If the new home is
    /// in another part, it is deferred.
    void add_late(Entry const& entry) noexcept {
        std::uint64_t const home = to_.home(entry.word);
        if (late_count_ == late_.size()) {
            place_late();
        }
        if (home < first_ || home >= last_ || late_count_ == late_.size()) {
            deferred_.add(entry);
        } else {
            late_[late_count_++] = entry;
        }
    }

    /// Places late entries. An entry that reaches a bucket that is not written yet stays.
    void place_late() noexcept {
        std::size_t left = 0;
        for (std::size_t i = 0; i < late_count_; ++i) {
            if (!place(late_[i])) {
                late_[left++] = late_[i];
            }
        }
        late_count_ = left;
    }

    /// Puts the entry into its home bucket or a later one. False if the next one is not written
    /// yet.
    bool place(Entry const& entry) noexcept {
        std::uint64_t bucket = to_.home(entry.word);
        while (bucket < base_ && !put(to_, bucket, entry)) {
            ++bucket;
        }
        return bucket < base_;
    }

    Buckets<NarrowBucket const> from_;
    Buckets<NarrowBucket> to_;
    std::uint64_t first_;
    std::uint64_t last_;
    std::uint64_t base_;  // new buckets before this are written
    // Bucket i is at i % kWindow until it is written. The last one takes what goes elsewhere.
    // Aligned by hand: under AddressSanitizer, GCC 12 does not align such objects on the stack.
    static constexpr std::size_t kWindowBytes = (kWindow + 1) * sizeof(NarrowBucket);
    std::array<unsigned char, kWindowBytes + alignof(NarrowBucket) - 1> memory_;
    NarrowBucket* const window_ = aligned(memory_.data());
    std::array<std::uint8_t, kWindow + 1> counts_{};  // entries of the buckets in the window
    Deferred& deferred_;
    std::array<Entry, 64> late_;
    std::size_t late_count_ = 0;
};

/// Spreads the old buckets [begin, end) on all threads.
void spread_range(Buckets<NarrowBucket const> const& from, Buckets<NarrowBucket> const& to,
                  std::uint64_t begin, std::uint64_t end, Deferred& deferred) noexcept {
    runtime::for_ranges(end - begin, runtime::kGrain, [&](std::size_t low, std::size_t high) {
        Part(from, to, begin + low, begin + high, deferred);
    });
}

using SideTickets = std::array<step::Ticket, NarrowBucket::kErased + 1>;

SideTickets side_tickets(NarrowBucket const* buckets) noexcept {
    return {buckets[0].tickets[NarrowBucket::kSpareLane],
            buckets[1].tickets[NarrowBucket::kSpareLane]};
}

/// One thread places the entries near boundaries at the end. Returns false if there are too many.
bool finish_spread(Buckets<NarrowBucket> const& to, Deferred const& deferred,
                   SideTickets const& sides) noexcept {
    if (!deferred.all_kept()) {
        return false;
    }
    for (std::size_t i = 0; i < deferred.count(); ++i) {
        std::uint64_t bucket = to.home(deferred[i].word);
        while (!put(to, bucket, deferred[i])) {
            bucket = bucket + 1 == to.count ? 0 : bucket + 1;
        }
    }
    for (std::size_t side = 0; side < sides.size(); ++side) {
        to.data[side].tickets[NarrowBucket::kSpareLane] = sides[side];
    }
    return true;
}

}  // namespace

bool BucketIndex::spread(BucketIndex const& other) noexcept {
    Buckets<NarrowBucket const> const from{
        reinterpret_cast<NarrowBucket const*>(other.memory_.data()), other.buckets_};
    Buckets<NarrowBucket> const to{reinterpret_cast<NarrowBucket*>(memory_.data()), buckets_};
    Deferred deferred;
    spread_range(from, to, 0, from.count, deferred);
    return finish_spread(to, deferred, side_tickets(from.data));
}

/// The last buckets first: they move to where no bucket is read any more. Each round takes all
/// buckets with this property, about a third of those that are left. The last few are copied first.
bool BucketIndex::spread_in_place(std::uint64_t buckets) noexcept {
    auto* const data = reinterpret_cast<NarrowBucket*>(memory_.data());
    Buckets<NarrowBucket const> const from{data, buckets_};
    Buckets<NarrowBucket> const to{data, buckets};
    SideTickets const sides = side_tickets(data);
    std::array<NarrowBucket, 128> copied;
    Deferred deferred;
    std::uint64_t left = buckets_;
    while (left > copied.size()) {
        std::uint64_t begin = left * buckets_ / buckets;
        while (to.first_after(from, begin) < left) {
            ++begin;
        }
        spread_range(from, to, begin, left, deferred);
        left = begin;
    }
    std::copy(data, data + left, copied.begin());
    spread_range({copied.data(), buckets_}, to, 0, left, deferred);
    set_buckets(buckets);
    return finish_spread(to, deferred, sides);
}

void BucketIndex::place(unsigned char const* key_buffer, std::uint64_t const* live, std::size_t top,
                        std::uint64_t count, BucketIndex const& other) noexcept {
    // Wide slots hold half of a hash, which is not enough to place them.
    if (cpu::is_narrow(format_.bytes) && buckets_ / other.buckets_ < kMostGrowth &&
        other.buckets_ / buckets_ < kMostShrinking && spread(other)) {
        entries_ = count;
        erased_ = 0;
        return;
    }
    clear();
    place(key_buffer, live, top, count);
}

void BucketIndex::resize(unsigned char const* key_buffer, std::uint64_t const* live,
                         std::size_t top, std::uint64_t count, std::uint64_t buckets) noexcept {
    // Less growth would take many rounds.
    bool const spreads = cpu::is_narrow(format_.bytes) && buckets >= buckets_ + buckets_ / 8 &&
                         buckets / buckets_ < kMostGrowth;
    if (spreads && spread_in_place(buckets)) {
        entries_ = count;
        erased_ = 0;
        return;
    }
    set_buckets(buckets);
    memory_.trim(buckets * sizeof(NarrowBucket));
    clear();
    place(key_buffer, live, top, count);
}

}  // namespace tensorhash::index
