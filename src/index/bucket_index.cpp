// Runs the row loops on all threads and sums their counts.
#include "index/bucket_index.hpp"

#include <algorithm>
#include <atomic>
#include <initializer_list>
#include <span>

#include "cpu/settle.hpp"
#include "runtime/scan.hpp"

namespace tensorhash::index {

using runtime::Chunks;
using runtime::cut;
using runtime::for_chunks;
using runtime::kGrain;

namespace {

// Positions have 32 bits, eight per bucket. At this size a table may be fuller than BucketRule
// allows. Its load still stays below 0.8, because a table holds at most 2^31 - 1 entries.
constexpr std::uint64_t kMaxBuckets = std::uint64_t{1} << 29;

/// Sums the `counted` fields of what `body` returns for the chunks.
template <class Count, class Body>
Count sum_chunks(Chunks const& chunks, std::initializer_list<std::uint64_t Count::*> counted,
                 Body&& body) {
    Count sum;
    for_chunks(chunks, [&](std::size_t, std::size_t begin, std::size_t end) {
        Count const here = body(begin, end);
        for (auto const field : counted) {
            std::atomic_ref(sum.*field).fetch_add(here.*field, std::memory_order_relaxed);
        }
    });
    return sum;
}

/// Counts the rows in the mask that come before each chunk.
void rank_winners(step::BatchView const& batch, Chunks const& chunks, Ranks& ranks) noexcept {
    for_chunks(chunks, [&](std::size_t chunk, std::size_t begin, std::size_t end) {
        ranks[chunk] =
            static_cast<std::uint64_t>(std::count(batch.mask + begin, batch.mask + end, 1));
    });
    ranks[chunks.count] = 0;
    runtime::scan(std::span(ranks).first(chunks.count + 1));
}

}  // namespace

BucketIndex::BucketIndex(step::KeyFormat format, std::uint64_t buckets, std::uint64_t seed,
                         runtime::Fill fill)
    : format_(format), seed_(seed), secret_(step::secret_of(seed)),
      loops_(&cpu::index_loops(format.bytes, format.float_bytes)),
      memory_(buckets * sizeof(step::NarrowBucket), fill) {
    set_buckets(buckets);
}

void BucketIndex::set_buckets(std::uint64_t buckets) noexcept {
    auto const rule = cpu::bucket_rule(format_.bytes);
    buckets_ = buckets;
    std::uint64_t const nearly_all = buckets * rule.lanes - buckets / 2;
    most_entries_ = buckets == kMaxBuckets ? nearly_all : buckets * rule.entries / 100;
    most_occupied_ = buckets == kMaxBuckets ? nearly_all : buckets * rule.occupied / 100;
}

std::uint64_t BucketIndex::buckets_for(step::KeyFormat format, std::uint64_t entries) {
    std::uint64_t const sized = cpu::bucket_rule(format.bytes).sized;
    // More would have kMaxBuckets too, and the product must not overflow.
    std::uint64_t const most = std::min(entries, std::uint64_t{1} << 32);
    return std::clamp<std::uint64_t>((most * 100 + sized - 1) / sized, 2, kMaxBuckets);
}

std::uint64_t BucketIndex::grown_for(std::uint64_t entries) const noexcept {
    if (entries <= most_entries_) {
        return buckets_;
    }
    auto const rule = cpu::bucket_rule(format_.bytes);
    std::uint64_t const growth = buckets_ <= rule.doubled ? 200 : rule.growth;
    std::uint64_t const grown = std::max(buckets_ * growth / 100, buckets_for(format_, entries));
    constexpr std::size_t kBytes = sizeof(step::NarrowBucket);
    return std::min(runtime::whole_huge_pages(grown * kBytes) / kBytes, kMaxBuckets);
}

std::uint64_t BucketIndex::room() const noexcept {
    std::uint64_t const occupied = entries_ + erased_;
    return std::min(most_entries_ > entries_ ? most_entries_ - entries_ : 0,
                    most_occupied_ > occupied ? most_occupied_ - occupied : 0);
}

BucketIndex BucketIndex::copy() const {
    BucketIndex copied(format_, buckets_, seed_, runtime::Fill::Committed);
    runtime::copy_bytes(copied.memory_.data(), memory_.data(),
                        buckets_ * sizeof(step::NarrowBucket));
    copied.entries_ = entries_;
    copied.erased_ = erased_;
    return copied;
}

step::IndexView BucketIndex::view(unsigned char const* key_buffer) const noexcept {
    return {const_cast<unsigned char*>(memory_.data()),
            buckets_,
            key_buffer,
            format_.bytes,
            format_.float_bytes,
            secret_};
}

void BucketIndex::find(unsigned char const* key_buffer, step::BatchView const& batch,
                       std::size_t rows) const {
    auto const index = view(key_buffer);
    for_chunks(cut(rows, kGrain), [&](std::size_t, std::size_t begin, std::size_t end) {
        loops_->find(index, batch, begin, end);
    });
}

cpu::ClaimCount BucketIndex::claim(unsigned char const* key_buffer, step::BatchView const& batch,
                                   std::size_t begin, std::size_t end) {
    auto const index = view(key_buffer);
    Chunks const chunks = cut(end - begin, kGrain);
    auto* const claim_rows = writers(chunks.shared()).claim;
    using Count = cpu::ClaimCount;
    auto count = sum_chunks<Count>(
        chunks, {&Count::claimed, &Count::from_erased, &Count::undecided, &Count::overtook},
        [&](std::size_t from, std::size_t to) {
            return claim_rows(index, batch, begin + from, begin + to);
        });
    if (count.undecided != 0) {
        count.overtook +=
            sum_chunks<Count>(chunks, {&Count::overtook}, [&](std::size_t from, std::size_t to) {
                Count late;
                late.overtook = loops_->join_late(index, batch, begin + from, begin + to);
                return late;
            }).overtook;
    }
    if (count.overtook != 0) {
        cpu::settle(batch, begin, end);
    }
    entries_ += count.claimed;
    erased_ -= count.from_erased;
    return count;
}

void BucketIndex::release_claims(unsigned char const* key_buffer, step::BatchView const& batch,
                                 std::size_t rows) noexcept {
    auto const index = view(key_buffer);
    Chunks const chunks = cut(rows, kGrain);
    auto* const release = writers(chunks.shared()).release_claims;
    auto const count = sum_chunks<cpu::ReleaseCount>(
        chunks, {&cpu::ReleaseCount::released, &cpu::ReleaseCount::to_erased},
        [&](std::size_t from, std::size_t to) { return release(index, batch, from, to); });
    entries_ -= count.released;
    erased_ += count.to_erased;
}

void BucketIndex::rank_and_follow(unsigned char const* key_buffer, step::BatchView const& batch,
                                  Chunks const& chunks, Ranks& ranks) const noexcept {
    rank_winners(batch, chunks, ranks);
    follow(key_buffer, batch, chunks);
}

void BucketIndex::follow(unsigned char const* key_buffer, step::BatchView const& batch,
                         Chunks const& chunks) const noexcept {
    auto const index = view(key_buffer);
    for_chunks(chunks, [&](std::size_t, std::size_t begin, std::size_t end) {
        loops_->follow(index, batch, begin, end);
    });
}

void BucketIndex::publish(unsigned char const* key_buffer, step::BatchView const& batch,
                          std::size_t rows, std::uint32_t const* free_top,
                          std::uint64_t reusable) noexcept {
    auto const index = view(key_buffer);
    Chunks const chunks = cut(rows, kGrain);
    Ranks ranks;
    rank_winners(batch, chunks, ranks);
    for_chunks(chunks, [&](std::size_t chunk, std::size_t begin, std::size_t end) {
        loops_->publish(index, batch, begin, end, ranks[chunk], free_top, reusable);
    });
    follow(key_buffer, batch, chunks);
}

/// Counts entries that were erased. Threads may call it at once.
void BucketIndex::subtract(std::uint64_t released, std::uint64_t to_erased) noexcept {
    std::atomic_ref(entries_).fetch_sub(released, std::memory_order_relaxed);
    std::atomic_ref(erased_).fetch_add(to_erased, std::memory_order_relaxed);
}

std::uint64_t BucketIndex::erase(unsigned char const* key_buffer, step::BatchView const& batch,
                                 std::size_t rows) noexcept {
    auto const count = loops_->exclusive.erase(view(key_buffer), batch, 0, rows);
    subtract(count.released, count.to_erased);
    return count.released;
}

void BucketIndex::erase(unsigned char const* key_buffer, step::BatchView const& batch,
                        Chunks const& chunks, std::span<std::uint64_t> taken) noexcept {
    auto const index = view(key_buffer);
    for_chunks(chunks, [&](std::size_t chunk, std::size_t begin, std::size_t end) {
        auto const count = loops_->shared.erase(index, batch, begin, end);
        taken[chunk] = count.released;
        subtract(count.released, count.to_erased);
    });
}

void BucketIndex::hash(unsigned char const* keys, cpu::RowList const& list,
                       std::uint64_t* out) const noexcept {
    loops_->hash(view(nullptr), keys, list, out);
}

void BucketIndex::put_back(unsigned char const* key_buffer, step::BatchView const& batch,
                           cpu::RowList const& list) noexcept {
    auto const undone = loops_->put_back(view(key_buffer), batch, list);
    subtract(0 - undone.released, 0 - undone.to_erased);
}

void BucketIndex::find_put_back(unsigned char const* key_buffer, step::BatchView const& batch,
                                cpu::RowList const& list) const noexcept {
    loops_->find_put_back(view(key_buffer), batch, list);
}

void BucketIndex::mark(unsigned char const* key_buffer, step::BatchView const& batch,
                       cpu::RowList const& list) noexcept {
    loops_->mark(view(key_buffer), batch, list);
}

void BucketIndex::release_marked(unsigned char const* key_buffer, step::BatchView const& batch,
                                 cpu::RowList const& list) noexcept {
    auto const count = loops_->release_marked(view(key_buffer), batch, list);
    subtract(count.released, count.to_erased);
}

void BucketIndex::place(unsigned char const* key_buffer, std::uint64_t const* live, std::size_t top,
                        std::uint64_t count) noexcept {
    auto const index = view(key_buffer);
    Chunks const chunks = cut(top, kGrain);
    auto* const place_live = writers(chunks.shared()).place;
    for_chunks(chunks, [&](std::size_t, std::size_t begin, std::size_t end) {
        place_live(index, cpu::LiveRange{live, begin, end});
    });
    entries_ += count;
}

void BucketIndex::clear() noexcept {
    runtime::zero_bytes(memory_.data(), buckets_ * sizeof(step::NarrowBucket));
    entries_ = 0;
    erased_ = 0;
}

runtime::Extension BucketIndex::extend(std::uint64_t buckets) {
    std::size_t const before = memory_.bytes();
    // resize() overwrites all buckets.
    if (!memory_.grow(buckets * sizeof(step::NarrowBucket), runtime::Fill::Committed)) {
        return {};
    }
    return {&memory_, runtime::Shrink{before}};
}

std::uint64_t BucketIndex::count_entries() const {
    bool const narrow = cpu::is_narrow(format_.bytes);
    auto const* const narrow_buckets = reinterpret_cast<step::NarrowBucket const*>(memory_.data());
    auto const* const wide_buckets = reinterpret_cast<step::WideBucket const*>(memory_.data());
    std::atomic<std::uint64_t> entries{0};
    runtime::for_ranges(buckets_, kGrain, [&](std::size_t begin, std::size_t end) {
        std::uint64_t here = 0;
        for (std::size_t bucket = begin; bucket < end; ++bucket) {
            if (narrow) {
                // The spare ticket is a real one only in buckets without overflow bits.
                std::size_t const tickets = step::NarrowBucket::kLanes +
                                            (step::NarrowBucket::has_overflow_bits(bucket) ? 0 : 1);
                for (std::size_t lane = 0; lane < tickets; ++lane) {
                    here += narrow_buckets[bucket].tickets[lane] != step::kNoTicket ? 1 : 0;
                }
            } else {
                for (auto const slot : wide_buckets[bucket].slots) {
                    here += step::holds_key(slot) ? 1 : 0;
                }
            }
        }
        entries.fetch_add(here, std::memory_order_relaxed);
    });
    return entries.load(std::memory_order_relaxed);
}

ProbeLengths BucketIndex::probe_lengths(unsigned char const* key_buffer,
                                        step::BatchView const& batch, std::size_t rows) const {
    ProbeLengths lengths;
    std::uint64_t const total =
        loops_->probe_buckets(view(key_buffer), batch, 0, rows, lengths.longest);
    lengths.mean = rows == 0 ? 0 : static_cast<double>(total) / static_cast<double>(rows);
    return lengths;
}

}  // namespace tensorhash::index
